//! Images with pull secrets.

use rubelet_testbed::Registry;
use rubelet_testbed::registry::{Access, PASSWORD, USER};
use serde_json::{Value, json};

use crate::joined::{Joined, WAITS, pod};

/// A pod with an image of the registry, and the pull secret of this name.
fn private(name: &str, image: &str, policy: &str, secret: Option<&str>) -> Value {
    let mut pod = pod(name, WAITS);
    let main = &mut pod["spec"]["containers"][0];
    main["image"] = image.into();
    main["imagePullPolicy"] = policy.into();
    if let Some(secret) = secret {
        pod["spec"]["imagePullSecrets"] = json!([{ "name": secret }]);
    }
    pod
}

/// A pull secret, as created by `kubectl create secret docker-registry`.
fn pull_secret(name: &str, image: &str, password: &str) -> Value {
    let host = image.split('/').next().unwrap();
    let login = json!({ "username": USER, "password": password });
    let config = json!({ "auths": { host: login } }).to_string();
    json!({
        "metadata": { "name": name, "namespace": "default" },
        "type": "kubernetes.io/dockerconfigjson",
        "stringData": { ".dockerconfigjson": config },
    })
}

#[test]
fn a_present_private_image_requires_its_pull_secret() {
    let registry = Registry::builder().access(Access::Basic).start().unwrap();
    let image = registry.image("rubelet/private:1");
    let joined = Joined::start("worker");
    let api = joined.cluster.api();
    api.create("secrets", &pull_secret("login", &image, PASSWORD))
        .unwrap();
    api.create("secrets", &pull_secret("wrong", &image, "guessed"))
        .unwrap();
    joined.create(&private("owner", &image, "IfNotPresent", Some("login")));
    joined.wait_ready("owner");
    // A runtime may request one image more than once.
    let pulls = registry.pulls();

    // The image is present, but a pod without the secret must pull it.
    for (name, secret) in [
        ("none", None),
        ("wrong", Some("wrong")),
        ("late", Some("late")),
    ] {
        joined.create(&private(name, &image, "IfNotPresent", secret));
    }
    joined.create(&private("never", &image, "Never", None));
    for name in ["none", "wrong", "late"] {
        let message = joined.waits_for(name, "ImagePullBackOff");
        let start = format!(
            "Back-off pulling image {image:?}: ErrImagePull: failed to pull image {image:?}: "
        );
        assert!(message.starts_with(&start), "{name}: {message}");
        // With the message of each runtime.
        let refused = message.to_lowercase();
        assert!(
            refused.contains("unauthorized") || refused.contains("authorization"),
            "{name}: {message}"
        );
        for secret in [PASSWORD, "guessed"] {
            assert!(!message.contains(secret), "{name}: {message}");
        }
    }
    // The message does not reveal that the image is present.
    assert_eq!(
        joined.waits_for("never", "ErrImageNeverPull"),
        format!("Container image {image:?} is not present with pull policy of Never")
    );
    assert_eq!(registry.pulls(), pulls, "nobody else was let in");

    // A pod with the same secret needs no pull, nor does one with another secret with the same password.
    joined.create(&private("second", &image, "IfNotPresent", Some("login")));
    joined.wait_ready("second");
    api.create("secrets", &pull_secret("late", &image, PASSWORD))
        .unwrap();
    joined.wait_ready("late");
    assert_eq!(registry.pulls(), pulls, "what is present is used");
    for name in ["none", "wrong"] {
        joined.waits_for(name, "ImagePullBackOff");
    }

    for name in ["owner", "second", "late", "none", "wrong", "never"] {
        joined
            .kubectl
            .stdout(&["delete", "pod", name, "--timeout=60s"]);
    }
    joined.wait_empty();
}

#[test]
fn without_verification_every_pod_may_use_a_present_image() {
    let registry = Registry::builder().access(Access::Token).start().unwrap();
    let image = registry.image("rubelet/shared:1");
    let joined = Joined::start_with("worker", |builder| {
        builder.config("imagePullCredentialsVerificationPolicy", "NeverVerify")
    });
    let api = joined.cluster.api();
    api.create("secrets", &pull_secret("login", &image, PASSWORD))
        .unwrap();
    joined.create(&private("owner", &image, "IfNotPresent", Some("login")));
    joined.wait_ready("owner");
    // A runtime may request one image more than once.
    let pulls = registry.pulls();
    joined.create(&private("none", &image, "IfNotPresent", None));
    joined.wait_ready("none");
    assert_eq!(registry.pulls(), pulls);
}
