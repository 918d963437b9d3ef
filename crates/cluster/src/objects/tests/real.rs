//! The same with the real client, against the model API server, as a node that may see no more than
//! its pods use.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use rubelet_api::{parse::api_pod, pod::Pod};
use rubelet_kube::{Client, ClientConfig, ClientOptions, Connector, Credential, Secret};
use rubelet_node_state::{
    clock::Clock,
    objects::{ObjectRefs, ObjectSource},
};
use serde_json::{Value, json};
use sim_api::{PodCache, SimApi, SimApiConfig, User};
use tempfile::TempDir;
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};

use super::cluster::seconds;
use crate::objects::{ChangeDetection, ClusterObjects, ObjectsParts, SecretsAtRest};

const BEGIN: i64 = 1_700_000_000;

struct Real {
    api: Arc<SimApi>,
    objects: ClusterObjects,
    task: JoinHandle<()>,
    _directory: TempDir,
}

impl Drop for Real {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.api.violations(), []);
        }
        self.task.abort();
    }
}

impl Real {
    async fn start() -> Self {
        let begin = Timestamp::from_second(BEGIN).unwrap();
        let config = SimApiConfig {
            authenticate: true,
            scheduler: false,
            start: Some(begin),
            ..SimApiConfig::default()
        };
        let api = Arc::new(SimApi::start(config).await.unwrap());
        api.add_token("node-token", User::node("n"));
        let server = Arc::clone(&api);
        let connector = Connector::new(move || {
            let server = Arc::clone(&server);
            async move { Ok(server.connect()) }
        });
        let mut config = ClientConfig::anonymous("http://model")
            .unwrap()
            .over(connector.http2());
        config.credential = Credential::Token(Secret::new("node-token"));
        let directory = tempfile::tempdir().unwrap();
        let objects = ClusterObjects::new(ObjectsParts {
            client: Client::new(config, ClientOptions::default()).unwrap(),
            clock: Clock::following_tokio(begin),
            directory: directory.path().join("objects"),
            secrets: SecretsAtRest::None,
            detection: ChangeDetection::Watch,
            ttl: Arc::new(|| None),
            sync_frequency: seconds(60),
        });
        let task = tokio::spawn(objects.clone().run());
        Self {
            api,
            objects,
            task,
            _directory: directory,
        }
    }

    fn create(&self, resource: &str, namespace: &str, name: &str, mut object: Value) {
        object["metadata"] = json!({"name": name, "namespace": namespace});
        let made = self.api.create(resource, &object);
        made.unwrap_or_else(|error| panic!("{resource} {namespace}/{name}: {error:?}"));
    }

    fn set_secret(&self, value: &str) {
        let mut secret = self.api.get("secrets", "default", "login").expect("it");
        secret["data"]["k"] = value.into();
        self.api.update("secrets", &secret).unwrap();
    }

    /// A pod on this node that references one of everything.
    fn pod(&self) -> Arc<Pod> {
        self.create("serviceaccounts", "default", "builder", json!({}));
        self.create(
            "secrets",
            "default",
            "login",
            json!({"data": {"k": "MQ=="}}),
        );
        self.create(
            "configmaps",
            "default",
            "settings",
            json!({"data": {"mode": "fast"}}),
        );
        let class = json!({"handler": "kata", "metadata": {"name": "safe"}});
        self.api
            .create("runtimeclasses.node.k8s.io", &class)
            .unwrap();
        let port = json!([{"port": 80}]);
        let spec = json!({"clusterIP": "10.0.0.7", "ports": port});
        self.create("services", "default", "web", json!({ "spec": spec }));
        let spec = json!({
            "nodeName": "n",
            "serviceAccountName": "builder",
            "runtimeClassName": "safe",
            "containers": [{
                "name": "c",
                "image": "app:1",
                "envFrom": [{"configMapRef": {"name": "settings"}}],
            }],
            "volumes": [
                {"name": "s", "secret": {"secretName": "login"}},
                {"name": "t", "projected": {"sources": [
                    {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}},
                ]}},
            ],
        });
        let kind = json!({"apiVersion": "v1", "kind": "Pod", "spec": spec});
        self.create("pods", "default", "web", kind);
        let object = self.api.get("pods", "default", "web").expect("the pod");
        let parsed = api_pod(object, "n").unwrap();
        Arc::new(parsed.pod)
    }

    /// A pod that has a token and that the API server knows nothing of any more.
    fn lost(&self) -> Arc<Pod> {
        let token = json!({"serviceAccountToken": {"path": "token"}});
        let spec = json!({
            "nodeName": "n",
            "containers": [{"name": "c", "image": "app:1"}],
            "volumes": [{"name": "t", "projected": {"sources": [token]}}],
        });
        let kind = json!({"apiVersion": "v1", "kind": "Pod", "spec": spec});
        self.create("pods", "default", "lost", kind);
        let object = self.api.get("pods", "default", "lost").expect("the pod");
        self.api.delete("pods", "default", "lost", Some(0)).unwrap();
        Arc::new(api_pod(object, "n").unwrap().pod)
    }

    async fn secret(&self, pod: &Arc<Pod>) -> Vec<u8> {
        let found = self
            .objects
            .objects(pod, ObjectRefs::Volumes)
            .await
            .unwrap();
        found.secrets["login"].data["k"].to_vec()
    }

    /// Waits until the pod was notified of something new.
    async fn told(&self, pod: &Pod, before: u64) -> Duration {
        let began = Instant::now();
        let mut changes = self.objects.changes(&pod.uid);
        changes.wait_for(|count| *count > before).await.unwrap();
        began.elapsed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_gets_what_its_pods_reference_and_then_leaves_the_api_server_alone() {
    let real = Real::start().await;
    let pod = real.pod();
    real.objects.track(&pod);
    let volumes = real
        .objects
        .objects(&pod, ObjectRefs::Volumes)
        .await
        .unwrap();
    assert_eq!(&*volumes.secrets["login"].data["k"], b"1");
    assert_eq!(volumes.tokens.len(), 1);
    let container = ObjectRefs::Environment(&pod.spec.containers[0]);
    let env = real.objects.objects(&pod, container).await.unwrap();
    assert_eq!(&*env.config_maps["settings"].data["mode"], b"fast");
    let web = ("WEB_SERVICE_HOST".to_owned(), "10.0.0.7".to_owned());
    assert!(env.services.contains(&web), "{:?}", env.services);
    let handler = real.objects.runtime_handler("safe").await.unwrap();
    assert_eq!(handler, "kata");

    let count = || {
        real.api
            .count(|request| request.resource != "serviceaccounts/token")
    };
    sleep(seconds(3600)).await;
    let before = count();
    sleep(seconds(3600)).await;
    let requests = count() - before;
    assert!(requests <= 8, "{requests} requests in an hour");

    let before = *real.objects.changes(&pod.uid).borrow();
    real.set_secret("Mg==");
    let took = real.told(&pod, before).await;
    assert!(took < seconds(1), "{took:?}");
    assert_eq!(real.secret(&pod).await, b"2");
}

#[tokio::test(start_paused = true)]
async fn what_changed_while_the_api_server_was_away_is_reported_when_it_is_back() {
    let real = Real::start().await;
    let pod = real.pod();
    real.objects.track(&pod);
    assert_eq!(real.secret(&pod).await, b"1");
    real.api.set_down(true);
    sleep(seconds(600)).await;
    assert_eq!(real.secret(&pod).await, b"1");
    real.set_secret("Mg==");
    assert_eq!(real.secret(&pod).await, b"1");
    real.api.set_down(false);
    let took = real.told(&pod, 0).await;
    assert!(took <= seconds(60), "{took:?}");
    assert_eq!(real.secret(&pod).await, b"2");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_was_bound_a_moment_ago_gets_its_objects_although_caches_lag() {
    let real = Real::start().await;
    real.api.configure(|config| {
        config.node_authorization = true;
        config.cache_lag = Duration::from_millis(20);
    });
    let pod = real.pod();
    real.objects.track(&pod);
    let began = Instant::now();
    loop {
        let found = real.objects.objects(&pod, ObjectRefs::Volumes).await;
        if found.is_ok_and(|found| found.tokens.len() == 1 && found.secrets.contains_key("login")) {
            break;
        }
        assert!(began.elapsed() < seconds(5), "{:?}", began.elapsed());
        sleep(Duration::from_millis(100)).await;
    }
    for resource in ["secrets", "serviceaccounts/token"] {
        let refused = real
            .api
            .count(|one| one.resource == resource && one.code == 403);
        assert!((1..=2).contains(&refused), "{resource}: {refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_whose_caches_lag_is_asked_again_before_the_pod_hears_of_it() {
    let real = Real::start().await;
    real.api.hold_pods(PodCache::NodeRestriction);
    let pod = real.pod();
    real.objects.track(&pod);
    let refused = || {
        let tokens = |code: u16| {
            real.api
                .count(|one| one.resource == "serviceaccounts/token" && one.code == code)
        };
        tokens(403) + tokens(404)
    };
    let release = async {
        for _ in 0..100 {
            if refused() >= 2 {
                break;
            }
            sleep(Duration::from_millis(10)).await;
        }
        real.api.release_pods(PodCache::NodeRestriction);
    };
    let began = Instant::now();
    let (volumes, ()) = tokio::join!(real.objects.objects(&pod, ObjectRefs::Volumes), release);
    assert_eq!(volumes.unwrap().tokens.len(), 1);
    assert!(began.elapsed() < seconds(1), "{:?}", began.elapsed());

    // A permanent error is reported within a second, and there is one request for each read from then on.
    let lost = real.lost();
    real.objects.track(&lost);
    for expected in [5, 1] {
        let before = refused();
        let error = real
            .objects
            .objects(&lost, ObjectRefs::Volumes)
            .await
            .unwrap_err();
        assert!(
            error.message.contains("failed to fetch token"),
            "{}",
            error.message
        );
        assert_eq!(refused() - before, expected);
    }
}
