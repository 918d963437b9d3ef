//! Which pods may use an image that is present on the node.

mod counts;

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
use rubelet_node_state::{clock::Clock, events::Recorder, metrics::NodeMetrics};
use rubelet_pod_plan::image_access::VerificationPolicy;
use tempfile::TempDir;
use tokio::time::sleep;

use super::{
    fake_objects::FakeObjects,
    node::{Node, seconds},
};

/// An image that only the user `alice` may pull.
const PRIVATE: &str = "registry.example/team/private:1";
const PUBLIC: &str = "registry.example/public:1";

/// A runtime and its registry.
#[derive(Default)]
struct Runtime {
    /// The user that may pull an image; empty if anybody may.
    allowed_users: BTreeMap<String, &'static str>,
    /// IDs of present images, by name.
    present: Mutex<BTreeMap<String, String>>,
    pulls: Mutex<Vec<String>>,
    /// Pulls hang.
    hangs: Mutex<bool>,
    /// Lists of images hang.
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
        if !self.allowed_users[&name].is_empty() && self.allowed_users[&name] != user {
            let message = format!("{user:?} may not pull");
            return Err(CriError::new("PullImage", CriErrorKind::NotFound, message));
        }
        self.load_image(&name);
        Ok(v1::PullImageResponse::default())
    }
}

impl Runtime {
    /// Makes the image present, as if it was loaded by hand.
    fn load_image(&self, name: &str) {
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

/// An image puller with its runtime, objects and records.
struct ImageTest {
    runtime: Arc<Runtime>,
    objects: Arc<FakeObjects>,
    recorder: Recorder,
    root: TempDir,
    policy: VerificationPolicy,
    metrics: Arc<NodeMetrics>,
    puller: ImagePuller,
    node: Node,
}

impl ImageTest {
    fn new(policy: &str, allowlist: &[&str]) -> Self {
        let allowlist: Vec<String> = allowlist.iter().map(ToString::to_string).collect();
        let policy = VerificationPolicy::parse(policy, &allowlist).unwrap();
        let runtime = Arc::new(Runtime {
            allowed_users: [(PRIVATE.to_owned(), "alice"), (PUBLIC.to_owned(), "")].into(),
            ..Runtime::default()
        });
        let objects = Arc::new(FakeObjects::default());
        let recorder = Recorder::new(Clock::following_tokio(jiff::Timestamp::UNIX_EPOCH));
        let root = tempfile::tempdir().unwrap();
        let logins = NodeLogins::default();
        let metrics = NodeMetrics::new();
        let puller = puller(
            &runtime,
            &objects,
            &recorder,
            root.path(),
            policy.clone(),
            logins,
            &metrics,
        );
        Self {
            runtime,
            objects,
            recorder,
            root,
            policy,
            metrics,
            puller,
            node: Node::new(),
        }
    }

    /// Restarts the agent.
    fn restart(&mut self) {
        let (runtime, objects) = (&self.runtime, &self.objects);
        let (policy, logins) = (self.policy.clone(), NodeLogins::default());
        let (recorder, root, metrics) = (&self.recorder, self.root.path(), &self.metrics);
        self.puller = puller(runtime, objects, recorder, root, policy, logins, metrics);
    }

    /// Adds a credential plugin that gives the password of `alice` to service accounts.
    fn add_account_plugin(&mut self) {
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
        let plugins = CredentialPlugins::new(vec![provider], directory, &self.metrics).unwrap();
        let logins = NodeLogins::default().with_plugins(Some(plugins));
        let (runtime, objects) = (&self.runtime, &self.objects);
        let (recorder, policy, metrics) = (&self.recorder, self.policy.clone(), &self.metrics);
        self.puller = puller(
            runtime, objects, recorder, directory, policy, logins, metrics,
        );
    }

    /// Starts a container of a pod with this service account.
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
        self.node.apply(&name, &spec);
        self.node.desired_pod(&name)
    }

    /// Starts a container of a pod with pull secrets of these users; returns the pulls, and the
    /// reason if it could not start.
    async fn start(
        &self,
        image: &str,
        users: &[&str],
        policy: &str,
    ) -> (Vec<String>, Result<(), String>) {
        self.objects.set_credentials(users, None);
        self.ensure(&self.pod(image, policy)).await
    }

    /// Starts a pull of the private image and drops the call.
    async fn start_pull(&self) {
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

    /// Lets the runtime complete that pull, and starts another agent.
    fn finish_pull_and_restart(&mut self) {
        self.runtime.load_image(PRIVATE);
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
    metrics: &Arc<NodeMetrics>,
) -> ImagePuller {
    let clock = Clock::following_tokio("2026-01-02T03:04:05Z".parse().unwrap());
    ImagePuller::new(
        Arc::clone(runtime) as _,
        PullParallelism::Unlimited,
        recorder.clone(),
        Arc::clone(objects) as _,
        logins,
        ImageAccess::new(root, policy, clock, Arc::clone(metrics)),
        Arc::clone(metrics),
    )
}

const DEFAULT: &str = "NeverVerifyPreloadedImages";

fn pulled(users: &[&str], image: &str) -> Vec<String> {
    users.iter().map(|user| format!("{user}@{image}")).collect()
}

#[tokio::test(start_paused = true)]
async fn a_present_private_image_is_denied_to_pods_without_its_secret() {
    let mut test = ImageTest::new(DEFAULT, &[]);
    let alice = || pulled(&["alice"], PRIVATE);
    let first = test.start(PRIVATE, &["alice"], "IfNotPresent").await;
    assert_eq!(first, (alice(), Ok(())));
    for round in 0..2 {
        // The same secret needs no pull.
        let same = test.start(PRIVATE, &["alice"], "IfNotPresent").await;
        assert_eq!(same, (Vec::new(), Ok(())), "{round}");
        let same = test.start(PRIVATE, &["mallory", "alice"], "Never").await;
        assert_eq!(same, (Vec::new(), Ok(())), "{round}");
        // Without a secret, or with another one, the registry decides.
        for (users, asked) in [(&[][..], ""), (&["mallory"], "mallory")] {
            let other = test.start(PRIVATE, users, "IfNotPresent").await;
            let refused = Err("ErrImagePull".to_owned());
            assert_eq!(other, (pulled(&[asked], PRIVATE), refused), "{round}");
            let other = test.start(PRIVATE, users, "Never").await;
            let refused = Err("ErrImageNeverPull".to_owned());
            assert_eq!(other, (Vec::new(), refused), "{round}");
        }
        // The same holds after a restart of the agent.
        test.restart();
    }
    let message = format!("Container image {PRIVATE:?} is not present with pull policy of Never");
    let reported = test.recorder.board().list();
    assert!(
        reported
            .iter()
            .any(|(.., event)| *event.message == *message)
    );
    assert_eq!(test.files("pulling").len(), 0);
}

#[tokio::test(start_paused = true)]
async fn records_have_the_kubelets_format() {
    let test = ImageTest::new(DEFAULT, &[]);
    test.start(PRIVATE, &["alice"], "IfNotPresent")
        .await
        .1
        .unwrap();
    test.start(PUBLIC, &[], "IfNotPresent").await.1.unwrap();
    let mut found = test.files("pulled");
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
    let test = ImageTest::new(DEFAULT, &[]);
    test.runtime.load_image(PRIVATE);
    let record = |version: &str| {
        format!(
            r#"{{"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/{version}","lastUpdatedTime":"2024-10-21T12:26:40Z","imageRef":"sha256:of-registry.example-team-private-1","credentialMapping":{{"registry.example/team/private":{{"kubernetesSecrets":[{{"uid":"uid-alice","namespace":"default","name":"alice","credentialHash":"older"}}]}}}}}}"#
        )
    };
    // A pull reveals the name of the file.
    test.start(PRIVATE, &["alice"], "Always").await.1.unwrap();
    let path = test.files("pulled").pop().unwrap().0;
    for version in ["v1alpha1", "v1beta1"] {
        fs::write(&path, record(version)).unwrap();
        let other = test.start(PRIVATE, &["mallory"], "Never").await;
        assert_eq!(other.1, Err("ErrImageNeverPull".to_owned()));
        let same = test.start(PRIVATE, &["alice"], "IfNotPresent").await;
        assert_eq!(same, (Vec::new(), Ok(())));
        // The secret was edited since: the record gets the new hash.
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            !text.contains("older") && text.contains("v1beta1"),
            "{text}"
        );
    }
    // An unreadable record allows nobody, and is replaced.
    for bad in ["", "{}", &record("v2"), &record("v1beta1")[1..]] {
        fs::write(&path, bad).unwrap();
        let any = test.start(PRIVATE, &["alice"], "Never").await;
        assert_eq!(any.1, Err("ErrImageNeverPull".to_owned()), "{bad}");
    }
    let again = test.start(PRIVATE, &["alice"], "IfNotPresent").await;
    assert_eq!(again, (pulled(&["alice"], PRIVATE), Ok(())));
    let again = test.start(PRIVATE, &["alice"], "Never").await;
    assert_eq!(again, (Vec::new(), Ok(())));
}

#[tokio::test(start_paused = true)]
async fn each_policy_decides_whether_preloaded_images_are_verified() {
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
        let test = ImageTest::new(policy, allowlist);
        test.runtime.load_image(PRIVATE);
        let (asked, result) = test.start(PRIVATE, &[], "IfNotPresent").await;
        let what = format!("{policy} {allowlist:?}");
        assert_eq!((asked.is_empty(), result.is_ok()), (free, free), "{what}");
        let (asked, result) = test.start(PRIVATE, &["alice"], "Never").await;
        assert_eq!((asked.len(), result.is_ok()), (0, free), "{what}");
        // A pull creates a record, also for an image that was not verified before.
        let (_, result) = test.start(PRIVATE, &["alice"], "Always").await;
        assert_eq!(result, Ok(()));
        let (asked, result) = test.start(PRIVATE, &["alice"], "Never").await;
        assert_eq!((asked.len(), result.is_ok()), (0, true), "{what}");
        let (_, result) = test.start(PRIVATE, &["mallory"], "Never").await;
        let free = policy != "AlwaysVerify" && policy != DEFAULT && free;
        assert_eq!(result.is_ok(), free, "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_image_pulled_without_credentials_is_for_all_pods() {
    let test = ImageTest::new("AlwaysVerify", &[]);
    let first = test.start(PUBLIC, &[], "IfNotPresent").await;
    assert_eq!(first, (pulled(&[""], PUBLIC), Ok(())));
    for users in [&[][..], &["mallory"]] {
        let other = test.start(PUBLIC, users, "Never").await;
        assert_eq!(other, (Vec::new(), Ok(())));
    }
}

#[tokio::test(start_paused = true)]
async fn an_image_that_arrives_while_no_agent_runs_is_not_preloaded() {
    let mut test = ImageTest::new(DEFAULT, &[]);
    test.start_pull().await;
    let intents = test.files("pulling");
    let expected = serde_json::json!({
        "kind": "ImagePullIntent",
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "image": PRIVATE,
    });
    assert_eq!(intents.len(), 1);
    assert_eq!(intents[0].1, expected);
    test.finish_pull_and_restart();
    let other = test.start(PRIVATE, &["mallory"], "Never").await;
    assert_eq!(other.1, Err("ErrImageNeverPull".to_owned()));
    assert_eq!(
        test.files("pulling").len(),
        0,
        "the intent has become a record"
    );
    assert_eq!(test.files("pulled").len(), 1);
    let other = test.start(PRIVATE, &["mallory"], "IfNotPresent").await;
    assert_eq!(other.1, Err("ErrImagePull".to_owned()));
    let owner = test.start(PRIVATE, &["alice"], "IfNotPresent").await;
    assert_eq!(owner, (pulled(&["alice"], PRIVATE), Ok(())));
}

#[tokio::test(start_paused = true)]
async fn a_hung_image_list_holds_up_only_the_pod_that_needs_it() {
    let mut test = ImageTest::new(DEFAULT, &[]);
    test.start(PUBLIC, &[], "IfNotPresent").await.1.unwrap();
    test.start_pull().await;
    test.finish_pull_and_restart();
    *test.runtime.lists_hang.lock() = true;
    let (waits, starts) = (test.pod(PRIVATE, "Never"), test.pod(PUBLIC, "IfNotPresent"));
    let started = tokio::select! {
        biased;
        _ = test.ensure(&waits) => panic!("the image is not listed yet"),
        started = test.ensure(&starts) => started,
    };
    assert_eq!(started, (Vec::new(), Ok(())));
    *test.runtime.lists_hang.lock() = false;
    let other = test.start(PRIVATE, &["mallory"], "Never").await;
    assert_eq!(other.1, Err("ErrImageNeverPull".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn records_are_removed_with_their_images() {
    let test = ImageTest::new(DEFAULT, &[]);
    test.start(PRIVATE, &["alice"], "IfNotPresent")
        .await
        .1
        .unwrap();
    test.runtime.present.lock().clear();
    sleep(seconds(301)).await;
    test.start(PUBLIC, &[], "IfNotPresent").await.1.unwrap();
    let left = test.files("pulled");
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].1["imageRef"], "sha256:of-registry.example-public-1");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_pulled_if_the_intent_cannot_be_recorded() {
    let test = ImageTest::new(DEFAULT, &[]);
    fs::write(test.root.path().join("image_manager"), "a file").unwrap();
    let first = test.start(PUBLIC, &[], "IfNotPresent").await;
    assert_eq!(first, (Vec::new(), Err("ErrImagePull".to_owned())));
}

#[tokio::test]
async fn an_image_pulled_by_a_service_account_is_for_its_pods_only() {
    let mut test = ImageTest::new(DEFAULT, &[]);
    test.add_account_plugin();
    let alice = || pulled(&["alice"], PRIVATE);
    let nobody = test.start_as("", "IfNotPresent").await;
    let refused = Err("ErrImagePull".to_owned());
    assert_eq!(nobody, (pulled(&[""], PRIVATE), refused));
    let first = test.start_as("builder", "IfNotPresent").await;
    assert_eq!(first, (alice(), Ok(())));
    let record = test.files("pulled").pop().unwrap().1;
    let expected = serde_json::json!({"registry.example/team/private": {
        "kubernetesServiceAccounts": [
            {"uid": "uid-builder", "namespace": "default", "name": "builder"},
        ],
    }});
    assert_eq!(record["credentialMapping"], expected);
    // Other pods of the account need no pull; those of another account are checked by the registry,
    // once.
    for policy in ["IfNotPresent", "Never"] {
        let same = test.start_as("builder", policy).await;
        assert_eq!(same, (Vec::new(), Ok(())), "{policy}");
    }
    let refused = Err("ErrImageNeverPull".to_owned());
    for account in ["", "other"] {
        let never = test.start_as(account, "Never").await;
        assert_eq!(never, (Vec::new(), refused.clone()), "{account:?}");
    }
    let other = test.start_as("other", "IfNotPresent").await;
    assert_eq!(other, (alice(), Ok(())));
    for account in ["other", "builder"] {
        let never = test.start_as(account, "Never").await;
        assert_eq!(never, (Vec::new(), Ok(())), "{account}");
    }
}
