//! The same tasks with the real client, against the model API server.

use rubelet_kube::{Client, ClientConfig, ClientOptions, Connector, Credential, Secret};
use rubelet_node_plan::node_status::{
    images::{ImageFact, listed},
    object::ContainerImage,
};
use serde_json::{Value, json};
use sim_api::{SimApi, SimApiConfig, User};

use super::{super::run, *};

/// A node that is joined to a model API server, with everything that looks after nodes there.
struct Joined {
    api: Arc<SimApi>,
    client: Client,
    outside: Outside,
    task: JoinHandle<()>,
}

impl Joined {
    async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    /// A node that joins after `prepare` made what is there already.
    async fn start_with(prepare: impl FnOnce(&SimApi)) -> Self {
        let config = SimApiConfig {
            authenticate: true,
            scheduler: false,
            node_lifecycle: true,
            start: Some(Timestamp::from_second(BEGIN).unwrap()),
            ..SimApiConfig::default()
        };
        let api = Arc::new(SimApi::start(config).await.unwrap());
        api.add_token("node-token", User::node(NAME));
        prepare(&api);
        let outside = Outside::new();
        outside.runtime.send_replace(ready());
        let (client, task) = Self::agent(&api, &outside);
        Self {
            api,
            client,
            outside,
            task,
        }
    }

    /// The tasks of an agent that knows nothing.
    fn agent(api: &Arc<SimApi>, outside: &Outside) -> (Client, JoinHandle<()>) {
        let server = Arc::clone(api);
        let connector = Connector::new(move || {
            let server = Arc::clone(&server);
            async move { Ok(server.connect()) }
        });
        let config = ClientConfig::anonymous("http://model").unwrap();
        let mut config = config.over(connector);
        config.credential = Credential::Token(Secret::new("node-token"));
        let client = Client::new(config, ClientOptions::default()).unwrap();
        let (_, tasks) = run(outside.parts(client.clone()));
        (client, tokio::spawn(tasks))
    }

    fn restart(&mut self) {
        self.task.abort();
        (self.client, self.task) = Self::agent(&self.api, &self.outside);
    }

    /// The node is ready, and stays so for that many seconds; its lease is renewed.
    async fn stays_ready(&self, count: u64) {
        self.api.forget_requests();
        for _ in 0..count {
            seconds(1).await;
            assert_eq!(self.ready(), "True");
        }
        let renewals = self.requests("update", "leases");
        assert!(
            renewals as u64 + 2 >= count / 10,
            "{renewals} renewals in {count} seconds"
        );
    }

    fn lease(&self) -> Value {
        let found = self
            .api
            .get("leases.coordination.k8s.io", "kube-node-lease", NAME);
        found.unwrap_or_default()
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
        if !std::thread::panicking() {
            assert_eq!(self.api.violations(), []);
        }
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
    // The API server puts an entry that is new before those that a patch does not name.
    assert_eq!(
        kinds,
        [
            "NetworkUnavailable",
            "MemoryPressure",
            "DiskPressure",
            "PIDPressure",
            "Ready"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_answers_again_learns_at_once_that_the_node_lives() {
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
async fn a_deleted_node_comes_back_with_its_lease_when_the_agent_is_restarted() {
    let mut node = Joined::start().await;
    seconds(20).await;
    let first = node.node()["metadata"]["uid"].clone();
    node.api.delete("nodes", "", NAME, None).unwrap();
    seconds(300).await;
    assert!(node.api.get("nodes", "", NAME).is_none());
    node.restart();
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

fn image(names: &[&str], size_bytes: u64) -> ContainerImage {
    ContainerImage {
        names: names.iter().map(|name| (*name).into()).collect(),
        size_bytes,
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_object_holds_null_lists_stays_ready_through_restarts() {
    let mut node = Joined::start().await;
    seconds(2).await;
    // As an agent would send them that lists images without a name.
    let images = vec![image(&[], 7), image(&["a:1"], 5)];
    node.outside
        .images
        .send_modify(|all| all.images = images.into());
    seconds(2).await;
    assert_eq!(node.node()["status"]["images"][0]["names"], Value::Null);
    node.stays_ready(120).await;
    node.restart();
    node.stays_ready(120).await;
    let images = vec![image(&["a:1"], 5)];
    node.outside
        .images
        .send_modify(|all| all.images = images.into());
    seconds(2).await;
    assert_eq!(node.node()["status"]["images"].as_array().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_object_was_left_with_null_lists_is_taken_over() {
    let node = Joined::start_with(|api| {
        let object = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NAME},
            "status": {"images": [{"names": [], "sizeBytes": 5}]}});
        api.create("nodes", &object).unwrap();
        let kept = api.get("nodes", "", NAME).unwrap();
        assert_eq!(kept["status"]["images"][0]["names"], Value::Null);
    })
    .await;
    seconds(2).await;
    node.stays_ready(120).await;
    assert_eq!(
        node.lease()["metadata"]["ownerReferences"][0]["uid"],
        node.node()["metadata"]["uid"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_node_object_that_nobody_answers_for_does_not_cost_the_lease() {
    let node = Joined::start_with(|api| {
        api.add_fault("* nodes* code=500".parse().unwrap());
    })
    .await;
    seconds(5).await;
    let lease = node.lease();
    assert_eq!(lease["spec"]["holderIdentity"], NAME);
    assert!(lease["metadata"]["ownerReferences"].is_null());
    node.api.clear_faults();
    seconds(40).await;
    assert_eq!(node.ready(), "True");
    assert_eq!(
        node.lease()["metadata"]["ownerReferences"][0]["uid"],
        node.node()["metadata"]["uid"]
    );
}

#[tokio::test(start_paused = true)]
async fn null_in_all_that_an_api_server_says_changes_nothing() {
    let mut node = Joined::start_with(|api| api.add_fault("* * nulls".parse().unwrap())).await;
    seconds(2).await;
    node.stays_ready(300).await;
    node.restart();
    node.stays_ready(300).await;
    assert_eq!(
        node.lease()["metadata"]["ownerReferences"][0]["uid"],
        node.node()["metadata"]["uid"]
    );
    assert_eq!(node.client.unreadable().list(), []);
}

#[tokio::test(start_paused = true)]
async fn a_field_of_the_wrong_type_is_named_and_costs_nothing_else() {
    let node = Joined::start().await;
    seconds(2).await;
    let odd = json!({"metadata": {"annotations": {"a": "b"}}, "spec": {"taints": [
        {"key": "x", "effect": "NoSchedule", "value": 7},
    ], "unschedulable": "no"}});
    node.api.patch("nodes", "", NAME, &odd).unwrap();
    seconds(2).await;
    let since = |node: &Joined| -> Vec<(String, i64)> {
        let unread = node.client.unreadable().list();
        unread
            .iter()
            .flat_map(|one| {
                let since = one.since.as_second();
                one.fields
                    .iter()
                    .map(move |field| (format!("{} {}", one.object, field.field), since))
            })
            .collect()
    };
    let first = since(&node);
    let fields: Vec<&str> = first.iter().map(|(field, _)| &**field).collect();
    assert_eq!(
        fields,
        [
            format!("nodes {NAME} spec.taints[0].value"),
            format!("nodes {NAME} spec.unschedulable")
        ]
    );
    node.stays_ready(400).await;
    assert_eq!(since(&node), first, "as long as it is so");
    let good = json!({"spec": {"taints": null, "unschedulable": null}});
    node.api.patch("nodes", "", NAME, &good).unwrap();
    seconds(2).await;
    assert_eq!(since(&node), []);
}

#[tokio::test(start_paused = true)]
async fn clocks_that_are_ten_minutes_apart_cost_the_node_nothing() {
    for minutes in [-10, 10] {
        let mut node = Joined::start_with(|api| {
            api.set_clock_skew(jiff::SignedDuration::from_mins(minutes));
        })
        .await;
        seconds(2).await;
        node.stays_ready(400).await;
        node.restart();
        seconds(2).await;
        node.stays_ready(100).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_does_not_cost_the_lease() {
    let mut node = Joined::start().await;
    seconds(2).await;
    node.stays_ready(60).await;
    // After a start with a right clock one that is ten minutes slow, and then a right one again.
    for start in [BEGIN - 600, BEGIN + 400] {
        node.outside.clock = Clock::following_tokio(Timestamp::from_second(start).unwrap());
        node.restart();
        seconds(2).await;
        node.stays_ready(300).await;
    }
    // What somebody wrote by mistake is no obstacle either.
    let lease = json!({"spec": {"renewTime": "2999-01-01T00:00:00.000000Z"}});
    let name = "leases.coordination.k8s.io";
    node.api
        .patch(name, "kube-node-lease", NAME, &lease)
        .unwrap();
    node.stays_ready(200).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_object_near_all_limits_is_kept_up() {
    let mut node = Joined::start().await;
    seconds(2).await;
    let labels: serde_json::Map<String, Value> = (0..500)
        .map(|number| (format!("example.com/{number:063}"), "v".repeat(63).into()))
        .collect();
    // All annotations together may have 256 KiB.
    let annotations = json!({"example.com/large": "x".repeat(255 * 1024)});
    let metadata = json!({"metadata": {"labels": labels, "annotations": annotations}});
    node.api.patch("nodes", "", NAME, &metadata).unwrap();
    let names: Vec<String> = (0..40)
        .map(|number| format!("r/{}:{number}", "n".repeat(250)))
        .collect();
    let facts = (0..300).map(|number| ImageFact {
        id: format!("{number}").into(),
        tags: match number % 2 {
            0 => Vec::new(),
            _ => names.iter().map(|name| name.as_str().into()).collect(),
        },
        size: number,
        ..ImageFact::default()
    });
    let images = listed(facts.collect(), Some(50));
    node.outside
        .images
        .send_modify(|all| all.images = images.into());
    seconds(2).await;
    let shown = node.node()["status"]["images"].clone();
    let shown = shown.as_array().unwrap();
    assert_eq!(shown.len(), 50);
    assert!(
        shown
            .iter()
            .all(|image| image["names"].as_array().unwrap().len() == 5)
    );
    node.stays_ready(120).await;
    node.restart();
    node.stays_ready(120).await;
    assert_eq!(
        node.node()["metadata"]["labels"]["example.com/".to_owned() + &"0".repeat(63)],
        "v".repeat(63)
    );
}
