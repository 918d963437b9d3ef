//! Who may use an image that is present.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use rubelet_api::pod::Pod;
use rubelet_cri::{CriError, CriErrorKind, CriResult, ImageService, v1};
use rubelet_pod_plan::image_access::VerificationPolicy;
use tempfile::TempDir;
use tokio::time::sleep;

use super::{
    drawn::FakeObjects,
    node::{Node, seconds},
};
use crate::{
    clock::Clock,
    events::Recorder,
    image_access::ImageAccess,
    images::{ImagePuller, PullParallelism},
    keyring::NodeLogins,
};

/// An image that only the user `alice` may pull, and what the node has of it.
const PRIVATE: &str = "registry.example/team/private:1";
const PUBLIC: &str = "registry.example/public:1";

/// A runtime, and the registries behind it.
#[derive(Default)]
struct Runtime {
    /// Who may pull what; an empty name is everybody.
    lets_in: BTreeMap<String, &'static str>,
    /// Identifiers of what is present, by name.
    present: Mutex<BTreeMap<String, String>>,
    pulls: Mutex<Vec<String>>,
    /// Pulls do not end.
    hangs: Mutex<bool>,
}

#[async_trait]
impl ImageService for Runtime {
    async fn image_status(
        &self,
        request: v1::ImageStatusRequest,
    ) -> CriResult<v1::ImageStatusResponse> {
        let name = request.image.unwrap_or_default().image;
        let id = self.present.lock().unwrap().get(&name).cloned();
        Ok(v1::ImageStatusResponse {
            image: id.map(|id| image(&name, id)),
            ..v1::ImageStatusResponse::default()
        })
    }

    async fn list_images(&self, _: v1::ListImagesRequest) -> CriResult<v1::ListImagesResponse> {
        let present = self.present.lock().unwrap().clone().into_iter();
        let images = present.map(|(name, id)| image(&name, id)).collect();
        Ok(v1::ListImagesResponse { images })
    }

    async fn pull_image(&self, request: v1::PullImageRequest) -> CriResult<v1::PullImageResponse> {
        let name = request.image.unwrap_or_default().image;
        let user = request.auth.map(|auth| auth.username).unwrap_or_default();
        self.pulls.lock().unwrap().push(format!("{user}@{name}"));
        if *self.hangs.lock().unwrap() {
            std::future::pending::<()>().await;
        }
        if !self.lets_in[&name].is_empty() && self.lets_in[&name] != user {
            let message = format!("{user:?} may not pull");
            return Err(CriError::new("PullImage", CriErrorKind::NotFound, message));
        }
        self.bring(&name);
        Ok(v1::PullImageResponse::default())
    }
}

impl Runtime {
    /// The image is present, as if somebody had loaded it.
    fn bring(&self, name: &str) {
        let id = format!("sha256:of-{}", name.replace(['/', ':'], "-"));
        self.present.lock().unwrap().insert(name.to_owned(), id);
    }

    fn take_pulls(&self) -> Vec<String> {
        std::mem::take(&mut self.pulls.lock().unwrap())
    }
}

fn image(name: &str, id: String) -> v1::Image {
    v1::Image {
        id,
        repo_tags: vec![name.to_owned()],
        ..v1::Image::default()
    }
}

/// A node's images, seen from its pods.
struct World {
    runtime: Arc<Runtime>,
    objects: Arc<FakeObjects>,
    recorder: Recorder,
    root: TempDir,
    policy: VerificationPolicy,
    puller: ImagePuller,
    node: Node,
}

impl World {
    fn new(policy: &str, allowlist: &[&str]) -> Self {
        let allowlist: Vec<String> = allowlist.iter().map(ToString::to_string).collect();
        let policy = VerificationPolicy::parse(policy, &allowlist).unwrap();
        let runtime = Arc::new(Runtime {
            lets_in: [(PRIVATE.to_owned(), "alice"), (PUBLIC.to_owned(), "")].into(),
            ..Runtime::default()
        });
        let objects = Arc::new(FakeObjects::default());
        let recorder = Recorder::new(Clock::following_tokio(jiff::Timestamp::UNIX_EPOCH));
        let root = tempfile::tempdir().unwrap();
        let puller = puller(&runtime, &objects, &recorder, root.path(), policy.clone());
        Self {
            runtime,
            objects,
            recorder,
            root,
            policy,
            puller,
            node: Node::new(),
        }
    }

    /// The agent starts anew.
    fn restart(&mut self) {
        let (runtime, objects) = (&self.runtime, &self.objects);
        let policy = self.policy.clone();
        self.puller = puller(runtime, objects, &self.recorder, self.root.path(), policy);
    }

    fn pod(&self, image: &str, policy: &str) -> Arc<Pod> {
        let spec =
            format!("containers: [{{name: a, image: '{image}', imagePullPolicy: {policy}}}]");
        let name = format!("pod-{}", policy.to_lowercase());
        self.node.want(&name, &spec);
        self.node.wanted(&name)
    }

    /// A pod with pull secrets of these users starts a container: what was pulled for it, and why
    /// it could not start.
    async fn start(
        &self,
        image: &str,
        users: &[&str],
        policy: &str,
    ) -> (Vec<String>, Result<(), String>) {
        self.objects.set_credentials(users, None);
        let pod = self.pod(image, policy);
        let ensured = self.puller.ensure(&pod, &pod.spec.containers[0]).await;
        let result = ensured.map(drop).map_err(|failure| failure.reason.into());
        (self.runtime.take_pulls(), result)
    }

    fn files(&self, directory: &str) -> Vec<(PathBuf, serde_json::Value)> {
        let directory = self.root.path().join("image_manager").join(directory);
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        entries
            .map(|entry| {
                let text = fs::read(entry.path()).unwrap();
                (entry.path(), serde_json::from_slice(&text).unwrap())
            })
            .collect()
    }
}

fn puller(
    runtime: &Arc<Runtime>,
    objects: &Arc<FakeObjects>,
    recorder: &Recorder,
    root: &Path,
    policy: VerificationPolicy,
) -> ImagePuller {
    let clock = Clock::following_tokio("2026-01-02T03:04:05Z".parse().unwrap());
    ImagePuller::new(
        Arc::clone(runtime) as _,
        PullParallelism::Unlimited,
        recorder.clone(),
        Arc::clone(objects) as _,
        NodeLogins::default(),
        ImageAccess::new(root, policy, clock),
    )
}

const DEFAULT: &str = "NeverVerifyPreloadedImages";

fn pulled(users: &[&str], image: &str) -> Vec<String> {
    users.iter().map(|user| format!("{user}@{image}")).collect()
}

#[tokio::test(start_paused = true)]
async fn a_private_image_that_one_pod_pulled_is_no_other_pods_without_its_secret() {
    let mut world = World::new(DEFAULT, &[]);
    let alice = || pulled(&["alice"], PRIVATE);
    let first = world.start(PRIVATE, &["alice"], "IfNotPresent").await;
    assert_eq!(first, (alice(), Ok(())));
    for round in 0..2 {
        // The same secret needs no pull.
        let same = world.start(PRIVATE, &["alice"], "IfNotPresent").await;
        assert_eq!(same, (Vec::new(), Ok(())), "{round}");
        let same = world.start(PRIVATE, &["mallory", "alice"], "Never").await;
        assert_eq!(same, (Vec::new(), Ok(())), "{round}");
        // Without one, or with another one, the registry has the last word.
        for (users, asked) in [(&[][..], ""), (&["mallory"], "mallory")] {
            let other = world.start(PRIVATE, users, "IfNotPresent").await;
            let refused = Err("ErrImagePull".to_owned());
            assert_eq!(other, (pulled(&[asked], PRIVATE), refused), "{round}");
            let other = world.start(PRIVATE, users, "Never").await;
            let refused = Err("ErrImageNeverPull".to_owned());
            assert_eq!(other, (Vec::new(), refused), "{round}");
        }
        // So it is after a restart of the agent.
        world.restart();
    }
    let message = format!("Container image {PRIVATE:?} is not present with pull policy of Never");
    let told = world.recorder.board().list();
    assert!(told.iter().any(|(.., event)| *event.message == *message));
    assert_eq!(world.files("pulling").len(), 0);
}

#[tokio::test(start_paused = true)]
async fn records_are_those_of_the_kubelet() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new(DEFAULT, &[]);
    world
        .start(PRIVATE, &["alice"], "IfNotPresent")
        .await
        .1
        .unwrap();
    world.start(PUBLIC, &[], "IfNotPresent").await.1.unwrap();
    let mut found = world.files("pulled");
    found.sort_by_key(|(_, record)| record["imageRef"].to_string());
    let expected = [
        serde_json::json!({
            "kind": "ImagePulledRecord",
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "lastUpdatedTime": "2026-01-02T03:04:05Z",
            "imageRef": "sha256:of-registry.example-public-1",
            "credentialMapping": {
                "registry.example/public": {"nodePodsAccessible": true},
            },
        }),
        serde_json::json!({
            "kind": "ImagePulledRecord",
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "lastUpdatedTime": "2026-01-02T03:04:05Z",
            "imageRef": "sha256:of-registry.example-team-private-1",
            "credentialMapping": {
                "registry.example/team/private": {"kubernetesSecrets": [{
                    "uid": "uid-alice",
                    "namespace": "default",
                    "name": "alice",
                    // SHA-256 of {"username":"alice","password":"hunter2"}.
                    "credentialHash":
                        "1c77f3cde526f15e3664d4255fc441716bd39c1d5264cce5abfcddfad0db4964",
                }]},
            },
        }),
    ];
    for ((path, record), expected) in found.iter().zip(&expected) {
        assert_eq!(record, expected, "{}", path.display());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!((mode(path), mode(path.parent().unwrap())), (0o600, 0o700));
    }
    let names: Vec<_> = found
        .iter()
        .map(|(path, _)| path.file_name().unwrap())
        .collect();
    assert_eq!(names.len(), 2);
    assert!(names.iter().all(|name| name.len() == "sha256-".len() + 64));
}

#[tokio::test(start_paused = true)]
async fn a_kubelets_records_are_taken_over() {
    let world = World::new(DEFAULT, &[]);
    world.runtime.bring(PRIVATE);
    let record = |version: &str| {
        format!(
            r#"{{"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/{version}","lastUpdatedTime":"2024-10-21T12:26:40Z","imageRef":"sha256:of-registry.example-team-private-1","credentialMapping":{{"registry.example/team/private":{{"kubernetesSecrets":[{{"uid":"uid-alice","namespace":"default","name":"alice","credentialHash":"older"}}]}}}}}}"#
        )
    };
    // A pull makes the file's name known.
    world.start(PRIVATE, &["alice"], "Always").await.1.unwrap();
    let path = world.files("pulled").pop().unwrap().0;
    for version in ["v1alpha1", "v1beta1"] {
        fs::write(&path, record(version)).unwrap();
        let other = world.start(PRIVATE, &["mallory"], "Never").await;
        assert_eq!(other.1, Err("ErrImageNeverPull".to_owned()));
        let same = world.start(PRIVATE, &["alice"], "IfNotPresent").await;
        assert_eq!(same, (Vec::new(), Ok(())));
        // The secret was edited since: its new content is known from here on.
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            !text.contains("older") && text.contains("v1beta1"),
            "{text}"
        );
    }
    // What can't be read lets nobody in, and is replaced.
    for bad in ["", "{}", &record("v2"), &record("v1beta1")[1..]] {
        fs::write(&path, bad).unwrap();
        let any = world.start(PRIVATE, &["alice"], "Never").await;
        assert_eq!(any.1, Err("ErrImageNeverPull".to_owned()), "{bad}");
    }
    let again = world.start(PRIVATE, &["alice"], "IfNotPresent").await;
    assert_eq!(again, (pulled(&["alice"], PRIVATE), Ok(())));
    let again = world.start(PRIVATE, &["alice"], "Never").await;
    assert_eq!(again, (Vec::new(), Ok(())));
}

#[tokio::test(start_paused = true)]
async fn each_policy_asks_of_a_preloaded_image_what_it_says() {
    for (policy, allowlist, free) in [
        ("NeverVerify", &[][..], true),
        (DEFAULT, &[], true),
        (
            "NeverVerifyAllowlistedImages",
            &["registry.example/team/*"],
            true,
        ),
        (
            "NeverVerifyAllowlistedImages",
            &["registry.example/team/private"],
            true,
        ),
        (
            "NeverVerifyAllowlistedImages",
            &["registry.example/tea/*"],
            false,
        ),
        (
            "NeverVerifyAllowlistedImages",
            &["registry.example/team/priv"],
            false,
        ),
        ("AlwaysVerify", &[], false),
    ] {
        let world = World::new(policy, allowlist);
        world.runtime.bring(PRIVATE);
        let (asked, result) = world.start(PRIVATE, &[], "IfNotPresent").await;
        let what = format!("{policy} {allowlist:?}");
        assert_eq!((asked.is_empty(), result.is_ok()), (free, free), "{what}");
        let (asked, result) = world.start(PRIVATE, &["alice"], "Never").await;
        assert_eq!((asked.len(), result.is_ok()), (0, free), "{what}");
        // A pull settles it, also for what nobody verified before.
        let (_, result) = world.start(PRIVATE, &["alice"], "Always").await;
        assert_eq!(result, Ok(()));
        let (asked, result) = world.start(PRIVATE, &["alice"], "Never").await;
        assert_eq!((asked.len(), result.is_ok()), (0, true), "{what}");
        let (_, result) = world.start(PRIVATE, &["mallory"], "Never").await;
        let free = policy != "AlwaysVerify" && policy != DEFAULT && free;
        assert_eq!(result.is_ok(), free, "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_image_that_anybody_pulled_is_everybodys() {
    let world = World::new("AlwaysVerify", &[]);
    let first = world.start(PUBLIC, &[], "IfNotPresent").await;
    assert_eq!(first, (pulled(&[""], PUBLIC), Ok(())));
    for users in [&[][..], &["mallory"]] {
        let other = world.start(PUBLIC, users, "Never").await;
        assert_eq!(other, (Vec::new(), Ok(())));
    }
}

#[tokio::test(start_paused = true)]
async fn an_image_that_arrives_while_the_agent_is_killed_is_not_preloaded() {
    let mut world = World::new(DEFAULT, &[]);
    *world.runtime.hangs.lock().unwrap() = true;
    world.objects.set_credentials(&["alice"], None);
    let pod = world.pod(PRIVATE, "IfNotPresent");
    let runtime = Arc::clone(&world.runtime);
    {
        let pull = world.puller.ensure(&pod, &pod.spec.containers[0]);
        tokio::pin!(pull);
        let begun = async {
            while runtime.pulls.lock().unwrap().is_empty() {
                sleep(seconds(1)).await;
            }
        };
        tokio::select! {
            _ = &mut pull => panic!("it hangs"),
            () = begun => {}
        }
    }
    let intents = world.files("pulling");
    let expected = serde_json::json!({
        "kind": "ImagePullIntent",
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "image": PRIVATE,
    });
    assert_eq!(intents.len(), 1);
    assert_eq!(intents[0].1, expected);
    // The runtime ends the pull by itself.
    world.runtime.bring(PRIVATE);
    *world.runtime.hangs.lock().unwrap() = false;
    world.runtime.take_pulls();
    world.restart();
    let other = world.start(PRIVATE, &["mallory"], "Never").await;
    assert_eq!(other.1, Err("ErrImageNeverPull".to_owned()));
    assert_eq!(world.files("pulling").len(), 0, "it is a record by now");
    assert_eq!(world.files("pulled").len(), 1);
    let other = world.start(PRIVATE, &["mallory"], "IfNotPresent").await;
    assert_eq!(other.1, Err("ErrImagePull".to_owned()));
    let owner = world.start(PRIVATE, &["alice"], "IfNotPresent").await;
    assert_eq!(owner, (pulled(&["alice"], PRIVATE), Ok(())));
}

#[tokio::test(start_paused = true)]
async fn records_go_with_their_images() {
    let world = World::new(DEFAULT, &[]);
    world
        .start(PRIVATE, &["alice"], "IfNotPresent")
        .await
        .1
        .unwrap();
    world.runtime.present.lock().unwrap().clear();
    sleep(seconds(301)).await;
    world.start(PUBLIC, &[], "IfNotPresent").await.1.unwrap();
    let left = world.files("pulled");
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].1["imageRef"], "sha256:of-registry.example-public-1");
}

#[tokio::test(start_paused = true)]
async fn without_a_place_for_the_intent_nothing_is_pulled() {
    let world = World::new(DEFAULT, &[]);
    fs::write(world.root.path().join("image_manager"), "a file").unwrap();
    let first = world.start(PUBLIC, &[], "IfNotPresent").await;
    assert_eq!(first, (Vec::new(), Err("ErrImagePull".to_owned())));
}
