//! Who may use an image that is present.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use parking_lot::Mutex;
use rubelet_api::pod::Pod;
use rubelet_config::{CredentialProvider, TokenAttributes, TokenCacheType};
use rubelet_cri::{CriError, CriErrorKind, CriResult, ImageService, v1};
use rubelet_image_pull::{
    image_access::ImageAccess,
    images::{ImagePuller, PullParallelism},
    node_logins::{CredentialPlugins, NodeLogins},
};
use rubelet_node_state::{clock::Clock, events::Recorder};
use rubelet_pod_plan::image_access::VerificationPolicy;
use tempfile::TempDir;
use tokio::time::sleep;

use super::{
    fake_objects::FakeObjects,
    node::{Node, seconds},
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
    /// Lists of images do not end.
    lists_hang: Mutex<bool>,
}

#[async_trait]
impl ImageService for Runtime {
    async fn image_status(
        &self,
        request: v1::ImageStatusRequest,
    ) -> CriResult<v1::ImageStatusResponse> {
        let name = request.image.unwrap_or_default().image;
        let id = self.present.lock().get(&name).cloned();
        Ok(v1::ImageStatusResponse {
            image: id.map(|id| image(&name, id)),
            ..v1::ImageStatusResponse::default()
        })
    }

    async fn list_images(&self, _: v1::ListImagesRequest) -> CriResult<v1::ListImagesResponse> {
        if *self.lists_hang.lock() {
            std::future::pending::<()>().await;
        }
        let present = self.present.lock().clone().into_iter();
        let images = present.map(|(name, id)| image(&name, id)).collect();
        Ok(v1::ListImagesResponse { images })
    }

    async fn pull_image(&self, request: v1::PullImageRequest) -> CriResult<v1::PullImageResponse> {
        let name = request.image.unwrap_or_default().image;
        let user = request.auth.map(|auth| auth.username).unwrap_or_default();
        self.pulls.lock().push(format!("{user}@{name}"));
        if *self.hangs.lock() {
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
        self.present.lock().insert(name.to_owned(), id);
    }

    fn take_pulls(&self) -> Vec<String> {
        std::mem::take(&mut self.pulls.lock())
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
        let logins = NodeLogins::default();
        let puller = puller(
            &runtime,
            &objects,
            &recorder,
            root.path(),
            policy.clone(),
            logins,
        );
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

    /// The agent starts again.
    fn restart(&mut self) {
        let (runtime, objects) = (&self.runtime, &self.objects);
        let (policy, logins) = (self.policy.clone(), NodeLogins::default());
        let (recorder, root) = (&self.recorder, self.root.path());
        self.puller = puller(runtime, objects, recorder, root, policy, logins);
    }

    /// From now on there is a plugin that gives the password of `alice` to service accounts.
    fn give_to_accounts(&mut self) {
        let (directory, name) = (self.root.path(), "plugin");
        let answer = r#"{"apiVersion": "credentialprovider.kubelet.k8s.io/v1", "kind": "CredentialProviderResponse",
            "cacheKeyType": "Image", "cacheDuration": "0s",
            "auth": {"registry.example": {"username": "alice", "password": "p"}}}"#;
        let script = directory.join(name);
        fs::write(&script, format!("#!/bin/sh\ncat <<END\n{answer}\nEND\n")).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let provider = CredentialProvider {
            name: name.to_owned(),
            match_images: vec!["registry.example".to_owned()],
            default_cache_duration: Duration::ZERO,
            api_version: "credentialprovider.kubelet.k8s.io/v1".to_owned(),
            args: Vec::new(),
            env: Vec::new(),
            token_attributes: Some(TokenAttributes {
                audience: "registry".to_owned(),
                cache_type: TokenCacheType::ServiceAccount,
                require_service_account: true,
                required_annotations: Vec::new(),
                optional_annotations: Vec::new(),
            }),
        };
        let plugins = CredentialPlugins::new(vec![provider], directory).unwrap();
        let logins = NodeLogins::default().with_plugins(Some(plugins));
        let (runtime, objects) = (&self.runtime, &self.objects);
        let (recorder, policy) = (&self.recorder, self.policy.clone());
        self.puller = puller(runtime, objects, recorder, directory, policy, logins);
    }

    /// A pod of this service account starts a container.
    async fn start_as(&self, account: &str, policy: &str) -> (Vec<String>, Result<(), String>) {
        let mut pod = Pod::clone(&self.pod(PRIVATE, policy));
        pod.spec.service_account = account.into();
        self.ensure(&Arc::new(pod)).await
    }

    async fn ensure(&self, pod: &Arc<Pod>) -> (Vec<String>, Result<(), String>) {
        let ensured = self.puller.ensure(pod, &pod.spec.containers[0]).await;
        let result = ensured.map(drop).map_err(|failure| failure.reason.into());
        (self.runtime.take_pulls(), result)
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
        self.ensure(&self.pod(image, policy)).await
    }

    /// A pull of the private image begins, and its caller goes away.
    async fn begin_to_pull(&self) {
        *self.runtime.hangs.lock() = true;
        self.objects.set_credentials(&["alice"], None);
        let pod = self.pod(PRIVATE, "IfNotPresent");
        let begun = async {
            while self.runtime.pulls.lock().is_empty() {
                sleep(seconds(1)).await;
            }
        };
        tokio::select! {
            _ = self.puller.ensure(&pod, &pod.spec.containers[0]) => panic!("it hangs"),
            () = begun => {}
        }
    }

    /// The runtime ends that pull by itself, and another agent starts.
    fn arrive_while_killed(&mut self) {
        self.runtime.bring(PRIVATE);
        *self.runtime.hangs.lock() = false;
        self.runtime.take_pulls();
        self.restart();
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
    logins: NodeLogins,
) -> ImagePuller {
    let clock = Clock::following_tokio("2026-01-02T03:04:05Z".parse().unwrap());
    ImagePuller::new(
        Arc::clone(runtime) as _,
        PullParallelism::Unlimited,
        recorder.clone(),
        Arc::clone(objects) as _,
        logins,
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
    world.begin_to_pull().await;
    let intents = world.files("pulling");
    let expected = serde_json::json!({
        "kind": "ImagePullIntent",
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "image": PRIVATE,
    });
    assert_eq!(intents.len(), 1);
    assert_eq!(intents[0].1, expected);
    world.arrive_while_killed();
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
async fn a_runtime_that_lists_no_images_holds_up_only_the_pod_that_needs_the_list() {
    let mut world = World::new(DEFAULT, &[]);
    world.start(PUBLIC, &[], "IfNotPresent").await.1.unwrap();
    world.begin_to_pull().await;
    world.arrive_while_killed();
    *world.runtime.lists_hang.lock() = true;
    let (waits, starts) = (
        world.pod(PRIVATE, "Never"),
        world.pod(PUBLIC, "IfNotPresent"),
    );
    let started = tokio::select! {
        biased;
        _ = world.ensure(&waits) => panic!("nobody knows who may use it"),
        started = world.ensure(&starts) => started,
    };
    assert_eq!(started, (Vec::new(), Ok(())));
    *world.runtime.lists_hang.lock() = false;
    let other = world.start(PRIVATE, &["mallory"], "Never").await;
    assert_eq!(other.1, Err("ErrImageNeverPull".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn records_go_with_their_images() {
    let world = World::new(DEFAULT, &[]);
    world
        .start(PRIVATE, &["alice"], "IfNotPresent")
        .await
        .1
        .unwrap();
    world.runtime.present.lock().clear();
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

#[tokio::test]
async fn an_image_that_a_service_account_pulled_is_for_pods_of_that_account() {
    let mut world = World::new(DEFAULT, &[]);
    world.give_to_accounts();
    let alice = || pulled(&["alice"], PRIVATE);
    let nobody = world.start_as("", "IfNotPresent").await;
    let refused = Err("ErrImagePull".to_owned());
    assert_eq!(nobody, (pulled(&[""], PRIVATE), refused));
    let first = world.start_as("builder", "IfNotPresent").await;
    assert_eq!(first, (alice(), Ok(())));
    let record = world.files("pulled").pop().unwrap().1;
    let expected = serde_json::json!({"registry.example/team/private": {
        "kubernetesServiceAccounts": [
            {"uid": "uid-builder", "namespace": "default", "name": "builder"},
        ],
    }});
    assert_eq!(record["credentialMapping"], expected);
    // Other pods of the account need no pull; those of another one have to ask the registry, once.
    for policy in ["IfNotPresent", "Never"] {
        let same = world.start_as("builder", policy).await;
        assert_eq!(same, (Vec::new(), Ok(())), "{policy}");
    }
    let refused = Err("ErrImageNeverPull".to_owned());
    for account in ["", "other"] {
        let never = world.start_as(account, "Never").await;
        assert_eq!(never, (Vec::new(), refused.clone()), "{account:?}");
    }
    let other = world.start_as("other", "IfNotPresent").await;
    assert_eq!(other, (alice(), Ok(())));
    for account in ["other", "builder"] {
        let never = world.start_as(account, "Never").await;
        assert_eq!(never, (Vec::new(), Ok(())), "{account}");
    }
}
