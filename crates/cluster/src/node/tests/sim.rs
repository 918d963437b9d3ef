//! The same tasks with the real client, against the model API server.

use rubelet_kube::{Client, ClientConfig, ClientOptions, Connector, Credential, Secret};
use serde_json::{Value, json};
use sim_api::{SimApi, SimApiConfig, User};

use super::{super::run, *};

/// A node that is joined to a model API server, with everything that looks after nodes there.
struct Joined {
    api: Arc<SimApi>,
    outside: Outside,
    task: JoinHandle<()>,
}

impl Joined {
    async fn start() -> Self {
        let config = SimApiConfig {
            authenticate: true,
            scheduler: false,
            node_lifecycle: true,
            start: Some(Timestamp::from_second(BEGIN).unwrap()),
            ..SimApiConfig::default()
        };
        let api = Arc::new(SimApi::start(config).await.unwrap());
        api.add_token("node-token", User::node(NAME));
        let server = Arc::clone(&api);
        let connector = Connector::new(move || {
            let server = Arc::clone(&server);
            async move { Ok(server.connect()) }
        });
        let config = ClientConfig::anonymous("http://model").unwrap();
        let mut config = config.over(connector);
        config.credential = Credential::Token(Secret::new("node-token"));
        let client = Client::new(config, ClientOptions::default()).unwrap();
        let outside = Outside::new();
        outside.runtime.send_replace(ready());
        let (_, tasks) = run(outside.parts(client));
        let task = tokio::spawn(tasks);
        Self { api, outside, task }
    }

    fn node(&self) -> Value {
        self.api.get("nodes", "", NAME).unwrap_or_default()
    }

    fn ready(&self) -> Value {
        let node = self.node();
        let conditions = node["status"]["conditions"].as_array();
        let ready = conditions.into_iter().flatten();
        let mut ready = ready.filter(|one| one["type"] == "Ready");
        ready
            .next()
            .map_or(Value::Null, |one| one["status"].clone())
    }

    /// Requests so far of that verb and resource.
    fn requests(&self, verb: &str, resource: &str) -> usize {
        self.api
            .count(|request| request.verb == verb && request.resource == resource)
    }

    fn heard(&self, reason: &str) -> bool {
        let rows = self.outside.recorder.board().list();
        rows.iter().any(|(_, _, event)| *event.reason == *reason)
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_stays_alive_for_an_hour_with_few_requests() {
    let node = Joined::start().await;
    millis(500).await;
    assert_eq!(node.ready(), "True");
    let lease = node
        .api
        .get("leases.coordination.k8s.io", "kube-node-lease", NAME);
    assert_eq!(
        lease.unwrap()["metadata"]["ownerReferences"][0]["uid"],
        node.node()["metadata"]["uid"]
    );
    // What a network plugin says of the node stays.
    let network = json!({ "status": { "conditions": [
        { "type": "NetworkUnavailable", "status": "False", "reason": "RouteCreated" },
    ] } });
    node.api.patch("nodes/status", "", NAME, &network).unwrap();
    seconds(1).await;
    node.api.forget_requests();
    for _ in 0..360 {
        seconds(10).await;
        assert_eq!(node.ready(), "True");
    }
    let leases = node.requests("update", "leases");
    assert!((345..=360).contains(&leases), "{leases} renewals");
    let all = node.api.requests().len();
    assert!(all <= leases + 13 + 13, "{all} requests, watches included");
    let conditions = node.node()["status"]["conditions"].clone();
    let kinds: Vec<&str> = conditions
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["type"].as_str())
        .collect();
    assert_eq!(
        kinds,
        [
            "MemoryPressure",
            "DiskPressure",
            "PIDPressure",
            "Ready",
            "NetworkUnavailable"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_answers_again_is_told_at_once_that_the_node_lives() {
    let node = Joined::start().await;
    seconds(20).await;
    node.api.set_frozen(true);
    seconds(120).await;
    assert_eq!(node.ready(), "Unknown");
    node.api.set_frozen(false);
    seconds(10).await;
    assert_eq!(node.ready(), "True");
    assert!(node.heard("NodeReady"));
}

#[tokio::test(start_paused = true)]
async fn connections_that_lead_nowhere_do_not_cost_the_node_its_lease() {
    let node = Joined::start().await;
    seconds(20).await;
    for _ in 0..3 {
        node.api.hang_connections();
        for _ in 0..120 {
            seconds(1).await;
            assert_eq!(node.ready(), "True");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_deleted_node_comes_back_with_its_lease() {
    let node = Joined::start().await;
    seconds(20).await;
    let first = node.node()["metadata"]["uid"].clone();
    node.api.delete("nodes", "", NAME, None).unwrap();
    seconds(15).await;
    assert_eq!(node.ready(), "True");
    let second = node.node()["metadata"]["uid"].clone();
    assert_ne!(first, second);
    let lease = node
        .api
        .get("leases.coordination.k8s.io", "kube-node-lease", NAME);
    assert_eq!(
        lease.unwrap()["metadata"]["ownerReferences"][0]["uid"],
        second
    );
}
