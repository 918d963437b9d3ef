//! Images: when they are pulled, and what a pod says while it has none.

use std::net::TcpListener;

use anyhow::{Context, Result};
use rubelet_testbed::manifest::{pod, waiting, with};
use rubelet_testbed::runtime::Kind;
use rubelet_testbed::status::{container, is_ready, restarts, waits_for};
use rubelet_testbed::{Node, Registry, images};
use serde_json::{Value, json};

fn of(name: &str, image: &str, policy: &str) -> Value {
    let image = json!({ "image": image, "imagePullPolicy": policy });
    pod(
        name,
        &json!({ "containers": [with(waiting("main"), &image)] }),
    )
}

/// Waits until the container waits for `reason`; the message.
fn wait_reason(node: &Node, name: &str, reason: &str) -> Result<String> {
    let what = format!("waits with {reason}");
    let seen = node.wait(name, &what, |pod| waits_for(pod, "main") == reason)?;
    assert_eq!(seen["status"]["phase"], "Pending", "{name}");
    let message = &container(&seen, "main")["state"]["waiting"]["message"];
    Ok(message.as_str().unwrap_or_default().to_owned())
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

/// An edit that names a good image starts the container at once, whatever it waited for.
fn mend(node: &Node, name: &str) -> Result<()> {
    node.apply(&of(name, images::BUSYBOX_IMAGE, "IfNotPresent"))?;
    let seen = node.wait_ready(name)?;
    assert_eq!(restarts(&seen, "main"), 0, "{name} never ran before");
    assert_eq!(container(&seen, "main")["image"], images::BUSYBOX_IMAGE);
    Ok(())
}

#[test]
fn an_image_that_is_absent_and_must_not_be_pulled_keeps_the_container_waiting() -> Result<()> {
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
    mend(&node, "never")
}

#[test]
fn a_name_that_no_image_can_have_is_told() -> Result<()> {
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
    mend(&node, "invalid")
}

#[test]
fn a_registry_that_refuses_is_told_and_then_backed_off_from() -> Result<()> {
    let node = Node::shared()?;
    // A port that was free a moment ago, and that nobody listens on.
    let closed = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let image = format!("{closed}/rubelet/refused:1");
    node.apply(&of("refused", &image, "IfNotPresent"))?;
    let cause = wait_reason(&node, "refused", "ErrImagePull")?;
    assert!(
        cause.to_lowercase().contains("connection refused"),
        "{cause}"
    );
    let pulling = format!("Pulling image {image:?}");
    has_event(&node, "refused", "Normal", "Pulling", &pulling)?;
    has_event(&node, "refused", "Warning", "Failed", "Error: ErrImagePull")?;
    let message = wait_reason(&node, "refused", "ImagePullBackOff")?;
    let start = format!("Back-off pulling image {image:?}");
    assert_eq!(message, format!("{start}: ErrImagePull: {cause}"));
    has_event(&node, "refused", "Normal", "BackOff", &start)?;
    mend(&node, "refused")
}

#[test]
fn an_image_is_pulled_when_the_policy_asks_for_it() -> Result<()> {
    let node = Node::shared()?;
    let registry = Registry::start()?;
    let image = registry.image("rubelet/pulled:1");
    // A pull that takes its time must not hold up other pods.
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
    let message = wait_reason(&node, "pull-away", "ErrImagePull")?;
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
fn a_mirror_stands_in_for_a_registry_that_is_away() -> Result<()> {
    let node = Node::shared()?;
    let mirror = Registry::start()?;
    // Nobody listens on port 1 and port 2.
    let hosts = format!(
        "server = \"http://127.0.0.1:1\"\n[host.\"http://127.0.0.1:2\"]\n[host.\"http://{}\"]\n",
        mirror.image("").trim_end_matches('/')
    );
    let folder = node.scratch().registry_hosts_dir().join("registry.invalid");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("hosts.toml"), hosts)?;
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
            message.contains("127.0.0.1:1 ") && message.contains("127.0.0.1:2 "),
            "{message}"
        );
    }
    Ok(())
}
