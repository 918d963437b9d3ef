//! Images that are pulled with credentials of a plugin, for a token of the pod's service account.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rubelet_testbed::Registry;
use rubelet_testbed::agent::AgentBuilder;
use rubelet_testbed::registry::{Access, PASSWORD, USER};
use serde_json::{Value, json};

use crate::joined::{Joined, WAITS, pod};

/// The annotation of a service account with the password: the plugin itself has no secret.
const ANNOTATION: &str = "tests.example/password";
const AUDIENCE: &str = "registry.example";

/// Records each call and its request, and responds with the annotation of the account.
fn plugin(directory: &Path, host: &str) -> String {
    let answer = json!({
        "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
        "kind": "CredentialProviderResponse",
        "cacheKeyType": "Registry",
        "cacheDuration": "1h",
        "auth": { host: { "username": USER, "password": "$password" } },
    });
    let answer = answer.to_string().replace('"', "\\\"");
    format!(
        "#!/bin/sh\ncd '{}'\ncat > asked\necho call >> calls\n\
         grep -q '\"serviceAccountToken\":\"' asked || exit 1\n\
         password=$(sed -n 's|.*\"{ANNOTATION}\":\"\\([^\"]*\\)\".*|\\1|p' asked)\n\
         echo \"{answer}\"\n",
        directory.display()
    )
}

/// Configures an agent that uses the plugin for images of this host.
fn with_plugin(builder: AgentBuilder, directory: &Path, host: &str) -> AgentBuilder {
    let programs = directory.join("programs");
    fs::create_dir_all(&programs).unwrap();
    let program = programs.join("accounts");
    fs::write(&program, plugin(directory, host)).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let config = json!({
        "apiVersion": "kubelet.config.k8s.io/v1",
        "kind": "CredentialProviderConfig",
        "providers": [{
            "name": "accounts",
            "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
            "matchImages": [host],
            "defaultCacheDuration": "0s",
            "tokenAttributes": {
                "serviceAccountTokenAudience": AUDIENCE,
                "cacheType": "ServiceAccount",
                "requireServiceAccount": true,
                "requiredServiceAccountAnnotationKeys": [ANNOTATION],
            },
        }],
    });
    let file = directory.join("providers.json");
    fs::write(&file, config.to_string()).unwrap();
    let flag = |name: &str, value: PathBuf| {
        format!("--image-credential-provider-{name}={}", value.display())
    };
    builder
        .flag(flag("config", file))
        .flag(flag("bin-dir", programs))
}

fn account(name: &str, annotations: &Value) -> Value {
    json!({ "metadata": { "name": name, "namespace": "default", "annotations": annotations } })
}

/// A pod of this service account.
fn pod_of(account: &str, name: &str, image: &str, policy: &str) -> Value {
    let mut pod = pod(name, WAITS);
    pod["spec"]["serviceAccountName"] = account.into();
    let main = &mut pod["spec"]["containers"][0];
    main["image"] = image.into();
    main["imagePullPolicy"] = policy.into();
    pod
}

/// The API server's review of a token.
fn review(joined: &Joined, token: &str) -> Value {
    let review = json!({
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": { "token": token, "audiences": [AUDIENCE] },
    });
    let file = joined.cluster.path("review.json");
    fs::write(&file, review.to_string()).unwrap();
    let path = "/apis/authentication.k8s.io/v1/tokenreviews";
    let file = file.display().to_string();
    let answer = joined
        .kubectl
        .stdout(&["create", "--raw", path, "-f", &file]);
    let answer: Value = serde_json::from_str(&answer).unwrap();
    answer["status"].clone()
}

#[test]
fn an_image_pulled_with_a_service_account_is_for_its_pods() {
    let registry = Registry::builder().access(Access::Basic).start().unwrap();
    let image = registry.image("rubelet/of-accounts:1");
    let host = image.split('/').next().unwrap();
    let mut directory = PathBuf::new();
    let joined = Joined::start_with("worker", |builder| {
        directory = builder.scratch().dir().join("credentials");
        with_plugin(builder, &directory, host)
    });
    let calls = || {
        let calls = fs::read_to_string(directory.join("calls"));
        calls.unwrap_or_default().lines().count()
    };
    let api = joined.cluster.api();
    let password = json!({ ANNOTATION: PASSWORD, "tests.example/other": "x" });
    for (name, annotations) in [
        ("builder", &password),
        ("other", &password),
        ("plain", &json!({})),
    ] {
        api.create("serviceaccounts", &account(name, annotations))
            .unwrap();
    }

    // An administrator must allow nodes to request tokens for an audience that no pod names.
    joined.create(&pod_of("builder", "owner", &image, "IfNotPresent"));
    joined.waits_for("owner", "ImagePullBackOff");
    assert_eq!(calls(), 0);
    let verb = "request-serviceaccounts-token-audience";
    api.allow("system:node:worker", verb, AUDIENCE).unwrap();
    joined.wait_ready("owner");
    assert_eq!(calls(), 1);
    let asked = fs::read_to_string(directory.join("asked")).unwrap();
    let asked: Value = serde_json::from_str(&asked).unwrap();
    assert_eq!(asked["image"], image.trim_end_matches(":1"));
    let annotations = &asked["serviceAccountAnnotations"];
    assert_eq!(*annotations, json!({ ANNOTATION: PASSWORD }));
    let token = asked["serviceAccountToken"].as_str().unwrap();
    let found = review(&joined, token);
    let user = &found["user"];
    assert_eq!(user["username"], "system:serviceaccount:default:builder");
    let bound_to = &user["extra"]["authentication.kubernetes.io/pod-name"];
    assert_eq!(*bound_to, json!(["owner"]));

    // A runtime may request one image more than once.
    let pulls = registry.pulls();
    joined.create(&pod_of("builder", "second", &image, "Never"));
    joined.wait_ready("second");
    joined.create(&pod_of("other", "never", &image, "Never"));
    joined.waits_for("never", "ErrImageNeverPull");
    joined.create(&pod_of("plain", "plain", &image, "IfNotPresent"));
    joined.waits_for("plain", "ImagePullBackOff");
    assert_eq!(registry.pulls(), pulls, "nobody else was let in");
    joined.create(&pod_of("other", "other", &image, "IfNotPresent"));
    joined.wait_ready("other");
    assert!(registry.pulls() > pulls, "the registry was asked");
    assert_eq!(calls(), 2, "once for each account with a password");

    let log = fs::read_to_string(joined.agent.log_path()).unwrap();
    for secret in [token, PASSWORD] {
        assert!(!log.contains(secret), "a secret is in the log");
    }
    for name in ["owner", "second", "never", "plain", "other"] {
        joined
            .kubectl
            .stdout(&["delete", "pod", name, "--timeout=60s"]);
    }
    joined.wait_empty();
}
