//! Images: when they are pulled, and the status of a pod without its image.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use anyhow::{Context, Result};
use rubelet_testbed::agent::free_port;
use rubelet_testbed::manifest::{pod, waiting, with};
use rubelet_testbed::node::TIMEOUT;
use rubelet_testbed::runtime::Kind;
use rubelet_testbed::status::{container, is_ready, restarts, waits_for};
use rubelet_testbed::{Agent, Node, Registry, TestRuntime, images, wait};
use serde_json::{Value, json};

fn of(name: &str, image: &str, policy: &str) -> Value {
    let image = json!({ "image": image, "imagePullPolicy": policy });
    pod(
        name,
        &json!({ "containers": [with(waiting("main"), &image)] }),
    )
}

/// Waits until the container waits for `reason`; returns the message.
fn wait_reason(node: &Node, name: &str, reason: &str) -> Result<String> {
    let what = format!("waits with {reason}");
    let seen = node.wait(name, &what, |pod| waits_for(pod, "main") == reason)?;
    assert_eq!(seen["status"]["phase"], "Pending", "{name}");
    let message = &container(&seen, "main")["state"]["waiting"]["message"];
    Ok(message.as_str().unwrap_or_default().to_owned())
}

/// The reason for an image whose registry can't be reached.
fn unreachable(node: &Node) -> &'static str {
    match node.runtime().kind() {
        Kind::Containerd | Kind::Embedded => "ErrImagePull",
        Kind::Crio => "RegistryUnavailable",
    }
}

fn has_event(node: &Node, pod: &str, kind: &str, reason: &str, message: &str) -> Result<()> {
    node.wait_event(pod, reason, message)?;
    let wanted = [kind, reason, message];
    let events = node.events(pod)?;
    assert!(
        events.iter().any(|event| event == &wanted),
        "{wanted:?} is not among {events:#?}"
    );
    Ok(())
}

/// An edit to a valid image starts the container immediately, whatever it waited for.
fn fix_image(node: &Node, name: &str) -> Result<()> {
    node.apply(&of(name, images::BUSYBOX_IMAGE, "IfNotPresent"))?;
    let seen = node.wait_ready(name)?;
    assert_eq!(restarts(&seen, "main"), 0, "{name} never ran before");
    assert_eq!(container(&seen, "main")["image"], images::BUSYBOX_IMAGE);
    Ok(())
}

#[test]
fn an_absent_image_with_pull_policy_never_is_awaited() -> Result<()> {
    let node = Node::shared()?;
    node.apply(&of("never", "localhost/rubelet/absent:1", "Never"))?;
    let message = wait_reason(&node, "never", "ErrImageNeverPull")?;
    let text =
        r#"Container image "localhost/rubelet/absent:1" is not present with pull policy of Never"#;
    assert_eq!(message, text);
    has_event(&node, "never", "Warning", "ErrImageNeverPull", text)?;
    has_event(
        &node,
        "never",
        "Warning",
        "Failed",
        "Error: ErrImageNeverPull",
    )?;
    fix_image(&node, "never")
}

#[test]
fn an_invalid_image_name_is_reported() -> Result<()> {
    let node = Node::shared()?;
    node.apply(&of("invalid", "Bad//Name", "IfNotPresent"))?;
    let message = wait_reason(&node, "invalid", "InvalidImageName")?;
    let start = r#"Failed to apply default image tag "Bad//Name": "#;
    assert!(message.starts_with(start), "{message}");
    has_event(&node, "invalid", "Warning", "InspectFailed", &message)?;
    has_event(
        &node,
        "invalid",
        "Warning",
        "Failed",
        "Error: InvalidImageName",
    )?;
    fix_image(&node, "invalid")
}

#[test]
fn a_failing_registry_is_reported_with_back_off() -> Result<()> {
    let node = Node::shared()?;
    // Nothing listens on it.
    let closed = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port(Ipv4Addr::LOCALHOST.into())?));
    let image = format!("{closed}/rubelet/refused:1");
    node.apply(&of("refused", &image, "IfNotPresent"))?;
    let reason = unreachable(&node);
    let cause = wait_reason(&node, "refused", reason)?;
    assert!(
        cause.to_lowercase().contains("connection refused"),
        "{cause}"
    );
    let pulling = format!("Pulling image {image:?}");
    has_event(&node, "refused", "Normal", "Pulling", &pulling)?;
    let error = format!("Error: {reason}");
    has_event(&node, "refused", "Warning", "Failed", &error)?;
    let message = wait_reason(&node, "refused", "ImagePullBackOff")?;
    let start = format!("Back-off pulling image {image:?}");
    assert_eq!(message, format!("{start}: {reason}: {cause}"));
    has_event(&node, "refused", "Normal", "BackOff", &start)?;
    fix_image(&node, "refused")
}

#[test]
fn an_image_is_pulled_according_to_its_policy() -> Result<()> {
    let node = Node::shared()?;
    let registry = Registry::start()?;
    let image = registry.image("rubelet/pulled:1");
    // A slow pull must not block other pods.
    registry.held(|| -> Result<()> {
        node.apply(&of("pull-missing", &image, "IfNotPresent"))?;
        node.wait_event("pull-missing", "Pulling", "Pulling image")?;
        node.apply(&of("pull-other", images::BUSYBOX_IMAGE, "IfNotPresent"))?;
        node.wait_ready("pull-other")?;
        let seen = node.pod("pull-missing")?.context("the pod is shown")?;
        assert_eq!(waits_for(&seen, "main"), "ContainerCreating");
        Ok(())
    })?;
    let seen = node.wait_ready("pull-missing")?;
    let status = container(&seen, "main");
    assert_eq!(status["image"], image);
    let id = status["imageID"].as_str().unwrap_or_default();
    assert!(
        id.contains("@sha256:"),
        "{id} names the content by its digest"
    );
    assert_eq!(registry.pulls(), 1);
    let start = format!("Successfully pulled image {image:?} in ");
    let event = node.wait_event("pull-missing", "Pulled", &start)?;
    assert!(
        event.contains(" including waiting). Image size: "),
        "{event}"
    );

    node.apply(&of("pull-present", &image, "IfNotPresent"))?;
    node.wait_ready("pull-present")?;
    node.wait_event("pull-present", "Pulled", "already present on machine")?;
    assert_eq!(registry.pulls(), 1, "what is present isn't pulled again");

    node.apply(&of("pull-always", &image, "Always"))?;
    node.wait_ready("pull-always")?;
    node.wait_event("pull-always", "Pulled", &start)?;
    assert_eq!(registry.pulls(), 2, "Always asks the registry each time");

    drop(registry);
    node.apply(&of("pull-away", &image, "Always"))?;
    let message = wait_reason(&node, "pull-away", unreachable(&node))?;
    assert!(
        message.to_lowercase().contains("connection refused"),
        "{message}"
    );
    assert!(
        is_ready(&node.pod("pull-always")?.context("the pod is shown")?),
        "what runs needs no registry"
    );
    Ok(())
}

#[test]
fn a_mirror_replaces_an_unreachable_registry() -> Result<()> {
    let node = Node::shared()?;
    let reads = node.runtime().kind() != Kind::Crio;
    if !rubelet_needs::applies(reads, "CRI-O has mirrors in files of its own") {
        return Ok(());
    }
    let mirror = Registry::start()?;
    // Nobody listens on port 1 and port 2.
    let hosts = format!(
        "server = \"http://127.0.0.1:1\"\n[host.\"http://127.0.0.1:2\"]\n[host.\"http://{}\"]\n",
        mirror.image("").trim_end_matches('/')
    );
    let directory = node.scratch().registry_hosts_dir().join("registry.invalid");
    fs::create_dir_all(&directory)?;
    fs::write(directory.join("hosts.toml"), hosts)?;
    let image = "registry.invalid/rubelet/mirrored:1";
    node.apply(&of("mirrored", image, "Always"))?;
    let seen = node.wait_ready("mirrored")?;
    let status = container(&seen, "main");
    assert_eq!(status["image"], image);
    let id = status["imageID"].as_str().unwrap_or_default();
    assert!(id.starts_with("registry.invalid/rubelet/mirrored@"), "{id}");
    assert_eq!(mirror.pulls(), 1);

    drop(mirror);
    node.apply(&of("mirrored-not", image, "Always"))?;
    let message = wait_reason(&node, "mirrored-not", "ErrImagePull")?;
    assert!(
        message.contains("connection refused") || message.contains("Connection refused"),
        "{message}"
    );
    if node.runtime().kind() == Kind::Embedded {
        assert!(
            message.contains("127.0.0.1:1: ") && message.contains("127.0.0.1:2: "),
            "{message}"
        );
    }
    Ok(())
}

#[test]
fn a_plugin_for_service_accounts_needs_a_cluster() -> Result<()> {
    let runtime = TestRuntime::start()?;
    let directory = runtime.scratch().subdir("plugins")?;
    let mut providers = Vec::new();
    for (name, needs_account) in [("needs-account", true), ("takes-any", false)] {
        let program = directory.join(name);
        fs::write(
            &program,
            "#!/bin/sh\ncat > \"$0.new\" && mv \"$0.new\" \"$0.asked\"\n",
        )?;
        fs::set_permissions(&program, PermissionsExt::from_mode(0o755))?;
        providers.push(json!({
            "name": name,
            "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
            "matchImages": ["accounts.invalid"],
            "defaultCacheDuration": "1m",
            "tokenAttributes": {
                "serviceAccountTokenAudience": "registry",
                "cacheType": "Token",
                "requireServiceAccount": needs_account,
            },
        }));
    }
    let config = json!({
        "apiVersion": "kubelet.config.k8s.io/v1",
        "kind": "CredentialProviderConfig",
        "providers": providers,
    });
    let file = directory.join("providers.json");
    fs::write(&file, config.to_string())?;
    let builder = Agent::builder(&runtime)
        .flag(format!(
            "--image-credential-provider-config={}",
            file.display()
        ))
        .flag(format!(
            "--image-credential-provider-bin-dir={}",
            directory.display()
        ));
    let node = Node::start_on(runtime, |_| builder)?;
    let image = "accounts.invalid/app:1";
    node.apply(&of("private", image, "IfNotPresent"))?;
    // It is called after the other one.
    let asked = directory.join("takes-any.asked");
    let asked = wait::until("the plugin was asked", Duration::from_secs(60), || {
        Ok(fs::read_to_string(&asked).ok())
    });
    let expected = json!({
        "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
        "kind": "CredentialProviderRequest",
        "image": "accounts.invalid/app",
    });
    assert_eq!(serde_json::from_str::<Value>(&asked?)?, expected);
    assert!(!directory.join("needs-account.asked").exists());
    let log = fs::read_to_string(node.agent().log_path())?;
    let said = log.lines().filter(|line| line.contains("are never run"));
    let said: Vec<_> = said.collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("needs-account"), "{said:?}");
    assert!(!said[0].contains("takes-any"), "{said:?}");
    Ok(())
}

#[test]
fn only_unused_images_are_removed_from_a_full_disk() -> Result<()> {
    const UNUSED: &str = "localhost/rubelet/unused:1";
    const WANTED: &str = "localhost/rubelet/wanted:1";
    let runtime = TestRuntime::start()?;
    images::load_one(&runtime, UNUSED, "unused")?;
    images::load_one(&runtime, WANTED, "wanted")?;
    // Its container is never created, and its image is still needed.
    let waiting_pod = with(
        waiting("main"),
        &json!({ "image": WANTED, "imagePullPolicy": "Never" }),
    );
    let missing = json!({
        "containers": [waiting_pod],
        "volumes": [{ "name": "gate", "hostPath": { "path": "/rubelet/absent", "type": "Directory" } }],
    });
    let runs = of("runs", images::BUSYBOX_IMAGE, "Never");
    let node = Node::start_on(runtime, |builder| {
        builder
            .config("imageGCHighThresholdPercent", 1)
            .config("imageGCLowThresholdPercent", 0)
            .config("imageMinimumGCAge", "1s")
            .manifest("runs.yaml", runs.to_string())
            .manifest("waits.yaml", pod("waits", &missing).to_string())
    })?;
    node.wait_ready("runs")?;
    let names = || node.truth().image_names();
    wait::until("the unused image is removed", TIMEOUT, || {
        let names = names()?;
        Ok((!names.iter().any(|name| name == UNUSED)).then_some(()))
    })?;
    // The same attempt has checked all images.
    let left = names()?;
    for kept in [WANTED, images::BUSYBOX_IMAGE] {
        assert!(left.iter().any(|name| name == kept), "{left:?}");
    }
    let event = "Failed to garbage collect required amount of images.";
    let warned = wait::until("it is reported that the disk stays full", TIMEOUT, || {
        let events = node.agent().get_json("/api/v1/namespaces/default/events")?;
        let text = events.to_string();
        Ok((text.contains("FreeDiskSpaceFailed") && text.contains(event)).then_some(()))
    });
    warned?;
    // Sandboxes can still be created.
    node.apply(&of("later", images::BUSYBOX_IMAGE, "Never"))?;
    node.wait_ready("later")?;
    Ok(())
}
