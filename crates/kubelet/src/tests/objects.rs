//! Pods that use API objects: environment variables, volumes, runtime classes, pull credentials.

use std::{any::Any, sync::Arc};

use async_trait::async_trait;
use parking_lot::Mutex;
use rubelet_api::{
    container::{EnvFrom, EnvValue, EnvVar, KeyRef, ObjectKind},
    objects::PodObjects,
    pod::Pod,
    status::{ContainerState, Phase},
    volume::{FileVolume, ObjectVolume, Volume, VolumeSource},
};
use rubelet_base::event_reason;
use rubelet_cri::{CriError, CriErrorKind, CriResult, ImageService, v1};
use rubelet_image_pull::{
    image_access::ImageAccess,
    images::{ImagePuller, PullParallelism},
    node_logins::NodeLogins,
};
use rubelet_node_state::{clock::Clock, events::Recorder, metrics::NodeMetrics};
use rubelet_sim::Behavior;
use tokio::time::sleep;

use super::{
    fake_objects::FakeObjects,
    node::{Node, seconds},
    wire::CallObserver,
};

const ONE: &str = "containers: [{name: a, image: 'app:1'}]";

/// The requests that created containers and sandboxes.
#[derive(Default)]
struct CreateRequests {
    containers: Mutex<Vec<v1::ContainerConfig>>,
    handlers: Mutex<Vec<String>>,
}

impl CreateRequests {
    fn of(node: &Node) -> Arc<Self> {
        let made = Arc::new(Self::default());
        node.wire.observe_calls(Arc::clone(&made) as _);
        made
    }

    /// The environment of the container that was created last.
    fn env(&self) -> Vec<(String, String)> {
        let containers = self.containers.lock();
        let last = containers.last().expect("a container was created");
        let text = |value: &[u8]| String::from_utf8(value.to_vec()).unwrap();
        let env = last.envs.iter();
        env.map(|one| (one.key.clone(), text(&one.value))).collect()
    }
}

impl CallObserver for CreateRequests {
    fn began(&self, _: &'static str, request: &dyn Any) -> usize {
        if let Some(request) = request.downcast_ref::<v1::CreateContainerRequest>() {
            let config = request.config.clone().expect("a configuration");
            self.containers.lock().push(config);
        }
        if let Some(request) = request.downcast_ref::<v1::RunPodSandboxRequest>() {
            let mut handlers = self.handlers.lock();
            handlers.push(request.runtime_handler.clone());
        }
        0
    }

    fn ended(&self, _: usize, _: Option<Result<(), &CriError>>) {}
}

/// An environment variable from this key.
fn variable(name: &str, kind: ObjectKind, object: &str, key: &str) -> EnvVar {
    let reference = KeyRef {
        object: object.into(),
        key: key.into(),
        optional: false,
    };
    EnvVar {
        name: name.into(),
        value: match kind {
            ObjectKind::ConfigMap => EnvValue::ConfigMapKey(reference),
            ObjectKind::Secret => EnvValue::SecretKey(reference),
        },
    }
}

/// The pod mounts the secret `login`.
fn with_volume(pod: &mut Pod) {
    pod.spec.volumes.push(Volume {
        name: "login".into(),
        source: VolumeSource::Files(FileVolume::Secret(ObjectVolume {
            name: "login".into(),
            items: Vec::new(),
            default_mode: 0o644,
            optional: false,
        })),
    });
}

fn secret_of(objects: &PodObjects) -> String {
    let data = &objects.secrets["login"].data;
    String::from_utf8(data["password"].to_vec()).unwrap()
}

fn state_of(node: &Node) -> (String, String) {
    match node.container("web", "a").map(|container| container.state) {
        Some(ContainerState::Waiting { reason, message }) => (reason.into(), message.into()),
        other => (format!("{other:?}"), String::new()),
    }
}

#[tokio::test(start_paused = true)]
async fn variables_come_from_objects_and_services() {
    let node = Node::new();
    let made = CreateRequests::of(&node);
    node.objects.set_config_map("settings", "mode", "fast");
    node.objects.set_secret("login", "password", "hunter2");
    node.objects.set_service("WEB_SERVICE_HOST", "10.0.0.1");
    node.apply("web", ONE);
    node.change_in_api("web", |pod| {
        let container = &mut pod.spec.containers[0];
        container.env_from.push(EnvFrom {
            prefix: "P_".into(),
            kind: ObjectKind::ConfigMap,
            name: "settings".into(),
            optional: false,
        });
        let secret = variable("PASSWORD", ObjectKind::Secret, "login", "password");
        container.env.push(secret);
    });
    node.until_running().await;
    let expected = [
        ("P_mode", "fast"),
        ("PASSWORD", "hunter2"),
        ("WEB_SERVICE_HOST", "10.0.0.1"),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(made.env(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_missing_object_holds_up_one_container_until_it_exists() {
    let node = Node::new();
    let uid = node.apply(
        "web",
        "containers: [{name: a, image: 'app:1'}, {name: b, image: 'app:1'}]",
    );
    node.change_in_api("web", |pod| {
        let variable = variable("MODE", ObjectKind::ConfigMap, "settings", "mode");
        pod.spec.containers[0].env.push(variable);
    });
    node.until("b runs", |node| node.state("web", "b") == "Running")
        .await;
    let reported = (
        "CreateContainerConfigError",
        "configmap \"settings\" not found",
    );
    let reported = (reported.0.to_owned(), reported.1.to_owned());
    node.until("it is reported", |node| state_of(node) == reported)
        .await;
    let event = "Failed Error: configmap \"settings\" not found";
    assert!(node.events("web").contains(&event.to_owned()));

    sleep(seconds(60)).await;
    node.objects.set_config_map("settings", "other", "x");
    let lacks = "couldn't find key mode in ConfigMap default/settings";
    node.within(seconds(1), "the key is missed", |node| {
        state_of(node).1 == lacks
    })
    .await;
    node.objects.set_config_map("settings", "mode", "fast");
    let took = node.until_running().await;
    assert!(took <= seconds(2), "{took:?}");
    assert_eq!(node.sim.oracle().starts(&uid, "b"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_volume_with_an_unreadable_object_holds_up_the_pod() {
    let node = Node::new();
    let why = "MountVolume.SetUp failed for volume \"login\" : failed to sync secret cache: timed out waiting for the condition";
    node.objects.set_unavailable(Some(why));
    node.apply("web", ONE);
    node.change_in_api("web", with_volume);
    sleep(seconds(60)).await;
    assert_eq!(node.state("web", "a"), "Waiting ContainerCreating");
    assert!(
        node.events("web")
            .contains(&format!("{} {why}", event_reason::FAILED_MOUNT))
    );
    assert_eq!(node.calls("RunPodSandbox"), 0);
    node.objects.set_secret("login", "password", "1");
    node.objects.set_unavailable(None);
    let took = node.until_running().await;
    assert!(took <= seconds(2), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn volumes_follow_their_objects_without_a_restart() {
    let mut node = Node::new();
    node.objects.set_secret("login", "password", "1");
    let uid = node.apply("web", ONE);
    node.change_in_api("web", with_volume);
    node.until_running().await;
    assert_eq!(secret_of(&node.host.written(&uid)), "1");
    node.objects.set_secret("login", "password", "2");
    let took = node
        .until("the change is written", |node| {
            secret_of(&node.host.written(&uid)) == "2"
        })
        .await;
    assert!(took <= seconds(1), "{took:?}");

    // While no agent runs, and after the next one started.
    node.kill().await;
    node.objects.set_secret("login", "password", "3");
    node.start();
    node.until("the change is written", |node| {
        secret_of(&node.host.written(&uid)) == "3"
    })
    .await;
    assert_eq!(node.sim.oracle().starts(&uid, "a"), 1);

    // Then no more volumes are written.
    sleep(seconds(60)).await;
    let reads = node.objects.reads();
    sleep(seconds(3600)).await;
    assert_eq!(node.objects.reads(), reads);
}

#[tokio::test(start_paused = true)]
async fn a_failed_volume_update_is_reported_and_retried() {
    let node = Node::new();
    node.objects.set_secret("login", "password", "1");
    let uid = node.apply("web", ONE);
    node.change_in_api("web", with_volume);
    node.until_running().await;
    sleep(seconds(10)).await;
    node.objects.set_unavailable(Some("no answer"));
    node.until("it is reported", |node| {
        node.events("web")
            .contains(&"FailedMount no answer".to_owned())
    })
    .await;
    let before = node.objects.reads();
    sleep(seconds(600)).await;
    let tries = node.objects.reads() - before;
    assert!((8..=16).contains(&tries), "{tries} tries in ten minutes");
    assert!(node.is_running("web"));
    node.objects.set_secret("login", "password", "2");
    node.objects.set_unavailable(None);
    node.within(seconds(1), "the change is written", |node| {
        secret_of(&node.host.written(&uid)) == "2"
    })
    .await;
    assert_eq!(node.sim.oracle().starts(&uid, "a"), 1);
}

#[tokio::test(start_paused = true)]
async fn objects_of_finished_or_removed_pods_are_not_kept() {
    let node = Node::new();
    node.sim.on_container("a", Behavior::exits(seconds(3), 0));
    let job = node.apply(
        "job",
        "restartPolicy: Never, containers: [{name: a, image: 'app:1'}]",
    );
    let web = node.apply("web", "containers: [{name: b, image: 'app:1'}]");
    node.until("the end", |node| {
        node.phase("job") == Some(Phase::Succeeded)
    })
    .await;
    sleep(seconds(1)).await;
    assert!(!node.objects.tracks(&job));
    assert!(node.objects.tracks(&web));
    node.remove_manifest("web");
    node.until("it is gone", |node| node.is_gone(&web)).await;
    assert!(!node.objects.tracks(&web));
}

#[tokio::test(start_paused = true)]
async fn the_sandbox_uses_the_handler_of_the_runtime_class() {
    let node = Node::new();
    let made = CreateRequests::of(&node);
    node.apply("web", ONE);
    node.change_in_api("web", |pod| pod.spec.runtime_class = Some("safe".into()));
    let event = "FailedCreatePodSandBox Failed to create pod sandbox: \
                 runtimeclass.node.k8s.io \"safe\" not found";
    node.until("it is reported", |node| {
        node.events("web").contains(&event.to_owned())
    })
    .await;
    node.objects.set_handler("safe", "kata");
    let took = node.until_running().await;
    assert!(took <= seconds(11), "{took:?}");
    assert_eq!(*made.handlers.lock(), ["kata"]);
}

/// A registry that allows one user.
#[derive(Default)]
struct Registry {
    allowed_user: &'static str,
    asked: Mutex<Vec<String>>,
    pulled: Mutex<bool>,
}

#[async_trait]
impl ImageService for Registry {
    async fn image_status(&self, _: v1::ImageStatusRequest) -> CriResult<v1::ImageStatusResponse> {
        let image = v1::Image {
            id: "sha256:1".to_owned(),
            ..v1::Image::default()
        };
        Ok(v1::ImageStatusResponse {
            image: self.pulled.lock().then_some(image),
            ..v1::ImageStatusResponse::default()
        })
    }

    async fn pull_image(&self, request: v1::PullImageRequest) -> CriResult<v1::PullImageResponse> {
        let user = request.auth.map(|auth| auth.username).unwrap_or_default();
        self.asked.lock().push(user.clone());
        if user != self.allowed_user {
            let message = format!("{user:?} may not pull");
            return Err(CriError::new("PullImage", CriErrorKind::NotFound, message));
        }
        *self.pulled.lock() = true;
        Ok(v1::PullImageResponse::default())
    }
}

#[tokio::test(start_paused = true)]
async fn credentials_are_tried_one_after_the_other() {
    let note = (
        "FailedToRetrieveImagePullSecret",
        "Unable to retrieve some image pull secrets (gone); attempting to pull the image may not succeed."
            .to_owned(),
    );
    for (users, allowed_user, asked, error) in [
        (&[][..], "", &[""][..], None),
        (&["one", "two", "three"], "two", &["one", "two"], None),
        (
            &["one", "two"],
            "nobody",
            &["one", "two"],
            Some(["\"one\" may not pull", ", ", "\"two\" may not pull]"]),
        ),
    ] {
        let objects = Arc::new(FakeObjects::default());
        objects.set_credentials(users, Some(note.clone()));
        let registry = Arc::new(Registry {
            allowed_user,
            ..Registry::default()
        });
        let recorder = Recorder::new(Clock::following_tokio(jiff::Timestamp::UNIX_EPOCH));
        let puller = ImagePuller::new(
            Arc::clone(&registry) as _,
            PullParallelism::Unlimited,
            recorder.clone(),
            objects,
            NodeLogins::default(),
            ImageAccess::unchecked(),
            NodeMetrics::new(),
        );
        let node = Node::new();
        node.apply("web", "containers: [{name: a, image: 'img:1'}]");
        let pod = node.desired_pod("web");
        let pulled = puller.ensure(&pod, &pod.spec.containers[0]).await;
        assert_eq!(*registry.asked.lock(), asked);
        let events: Vec<_> = recorder.board().list();
        let reported = |reason: &str| {
            let of = events.iter().filter(|(.., event)| *event.reason == *reason);
            of.map(|(.., event)| event.message.to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(reported(note.0), std::slice::from_ref(&note.1));
        assert_eq!(pulled.is_err(), error.is_some());
        if let Some(error) = error {
            let reported = reported("Failed").remove(0);
            assert!(
                reported.starts_with("Failed to pull image \"img:1\": ["),
                "{reported}"
            );
            assert!(
                error.iter().all(|part| reported.contains(part)),
                "{reported}"
            );
        }
        assert!(
            events
                .iter()
                .all(|(.., event)| !event.message.contains("hunter2"))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn credentials_of_the_node_are_tried_after_those_of_the_pod() {
    let directory = tempfile::tempdir().unwrap();
    let content = r#"{"auths": {"https://index.docker.io/v1/": {"username": "node"}}}"#;
    std::fs::write(directory.path().join("config.json"), content).unwrap();
    let objects = Arc::new(FakeObjects::default());
    objects.set_credentials(&["pod"], None);
    let registry = Arc::new(Registry {
        allowed_user: "node",
        ..Registry::default()
    });
    let puller = ImagePuller::new(
        Arc::clone(&registry) as _,
        PullParallelism::Unlimited,
        Recorder::new(Clock::following_tokio(jiff::Timestamp::UNIX_EPOCH)),
        objects,
        NodeLogins::of_kubelet(directory.path(), None),
        ImageAccess::unchecked(),
        NodeMetrics::new(),
    );
    let node = Node::new();
    node.apply("web", "containers: [{name: a, image: 'img:1'}]");
    let pod = node.desired_pod("web");
    let pulled = puller.ensure(&pod, &pod.spec.containers[0]).await;
    assert!(pulled.is_ok());
    assert_eq!(*registry.asked.lock(), ["pod", "node"]);
}

#[tokio::test(start_paused = true)]
async fn volumes_follow_the_labels_of_their_pod() {
    let node = Node::new();
    let uid = node.apply("web", ONE);
    node.change_in_api("web", |pod| {
        pod.spec.volumes.push(Volume {
            name: "about".into(),
            source: VolumeSource::Files(FileVolume::DownwardApi {
                items: Vec::new(),
                default_mode: 0o644,
            }),
        });
    });
    node.until_running().await;
    sleep(seconds(10)).await;
    let (reads, refreshed) = (node.objects.reads(), node.host.refreshed(&uid));
    node.change_in_api("web", |pod| {
        pod.labels.insert("tier".into(), "front".into());
    });
    sleep(seconds(1)).await;
    assert_eq!(node.objects.reads(), reads + 1);
    assert_eq!(node.host.refreshed(&uid), refreshed + 1);
    assert_eq!(node.sim.oracle().starts(&uid, "a"), 1);
}
