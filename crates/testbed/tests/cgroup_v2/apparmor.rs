//! Containers under AppArmor, in a guest whose kernel has it.

use anyhow::Result;
use rubelet_testbed::images;
use rubelet_testbed::manifest::{pod, shell, with};
use rubelet_testbed::sockets32::{self, ALG, INET, VSOCK};
use rubelet_testbed::status::{container, has_ended, is_ready, waits_for};
use rubelet_testbed::vm::Image;
use serde_json::{Value, json};

use crate::node::Node;

/// Prints its profile and tries what the runtime's default profile denies, with the capability that
/// would allow it.
const TRIES: &str = "cat /proc/self/attr/current; mkdir /at; \
    mount -t tmpfs none /at && echo mounted || echo no-mount; \
    umount /proc/sys && echo unmounted; \
    { echo x > /proc/sys/kernel/domainname; } && echo written || echo no-write; \
    sleep 1000 & kill $! && echo killed; \
    sleep 1000 & cat /proc/$!/environ > /dev/null && echo traced";

/// A custom profile.
const MINE: &str = "profile mine flags=(attach_disconnected) {\n  file,\n  capability,\n  \
    network,\n  signal,\n  ptrace,\n  deny /proc/version r,\n}\n";

/// A container with a profile of this type, if any.
fn under(name: &str, script: &str, kind: &str, profile: Option<&str>) -> Value {
    let mut wanted = json!({ "type": kind });
    if let Some(profile) = profile {
        wanted["localhostProfile"] = profile.into();
    }
    let security = json!({ "appArmorProfile": wanted });
    with(shell(name, script), &json!({ "securityContext": security }))
}

fn may_mount(container: Value) -> Value {
    let capabilities = json!({ "add": ["SYS_ADMIN"] });
    let security = json!({ "securityContext": { "capabilities": capabilities } });
    with(container, &security)
}

/// The log of a pod's container.
fn log(node: &mut Node, pod: &str, container: &str) -> Result<String> {
    node.run(&format!(
        "cat /var/log/pods/default_{pod}-guest_*/{container}/0.log"
    ))
}

fn once(name: &str, containers: &[Value]) -> Value {
    let spec = json!({ "restartPolicy": "Never", "containers": containers });
    pod(name, &spec)
}

fn apply_tries(node: &mut Node) -> Result<()> {
    let asked = may_mount(under("asked", TRIES, "RuntimeDefault", None));
    node.apply(&once(
        "tries",
        &[
            may_mount(shell("silent", TRIES)),
            asked,
            may_mount(under("free", TRIES, "Unconfined", None)),
        ],
    ))?;
    Ok(())
}

fn apply_sockets(node: &mut Node) -> Result<()> {
    // With a system call whose arguments a seccomp filter can't see.
    let sockets = sockets32::script(&[ALG, VSOCK, INET].map(sockets32::socketcall));
    let usual = json!({ "securityContext": { "seccompProfile": { "type": "RuntimeDefault" } } });
    node.apply(&once(
        "sockets",
        &[
            with(shell("silent", &sockets), &usual),
            with(under("free", &sockets, "Unconfined", None), &usual),
        ],
    ))?;
    Ok(())
}

fn apply_profiles(node: &mut Node) -> Result<()> {
    let script = "cat /proc/self/attr/current; cat /proc/version; echo version-$?";
    let mine = under("mine", script, "Localhost", Some("mine"));
    let absent = under("absent", "true", "Localhost", Some("of-another-node"));
    let whole = with(
        shell("whole", "cat /proc/self/attr/current"),
        &json!({ "securityContext": { "privileged": true } }),
    );
    let small = json!({ "allowPrivilegeEscalation": false, "runAsUser": 1000 });
    let small = with(
        shell("small", "cat /proc/self/attr/current"),
        &json!({ "securityContext": small }),
    );
    node.apply(&once("profiles", &[mine, whole, small]))?;
    node.apply(&once("refused", &[absent]))?;
    Ok(())
}

fn apply_volumes(node: &mut Node) -> Result<()> {
    // Declared volumes of hostile images and of a valid one.
    let guarded = json!({ "readOnlyRootFilesystem": true });
    let of_image = |name: &str, image: &str, script: &str| {
        let image = json!({ "image": image, "securityContext": guarded });
        once(name, &[with(shell("main", script), &image)])
    };
    let script = "cat /data/seed; touch /data/new /missing/deep/new && echo written; \
        touch /new || echo read-only; grep -c ' /sys sysfs ro,' /proc/mounts";
    node.apply(&of_image("volumes", images::VOLUMES, script))?;
    let hostile = images::with_volume("/links/sys/kernel");
    node.apply(&of_image("hostile", &hostile, "true"))?;
    Ok(())
}

fn apply_lasting(node: &mut Node) -> Result<()> {
    // Runs until it is stopped, with a grace period that is much longer than this test waits.
    let wait = "trap 'exit 0' TERM; while ! [ -s /seen ]; do sleep 0.1; done; cat /seen; \
        sleep 100000 & wait $!";
    let hook = ["sh", "-c", "cat /proc/self/attr/current > /seen"];
    let lasting = with(
        shell("lasting", wait),
        &json!({ "lifecycle": { "postStart": { "exec": { "command": hook } } } }),
    );
    let spec = json!({ "terminationGracePeriodSeconds": 1000, "containers": [lasting] });
    node.apply(&pod("lasting", &spec))?;
    Ok(())
}

fn the_default_profile_denies_mounts_and_writes(node: &mut Node) -> Result<()> {
    node.wait("tries", "has ended", has_ended)?;
    for name in ["silent", "asked"] {
        let log = log(node, "tries", name)?;
        assert!(log.contains("rubelet-default (enforce)"), "{name}: {log}");
        for expected in ["no-mount", "unmounted", "no-write", "killed", "traced"] {
            assert!(log.contains(&format!(" {expected}\n")), "{name}: {log}");
        }
    }
    let free = log(node, "tries", "free")?;
    for expected in ["unconfined", "mounted", "unmounted", "written"] {
        assert!(free.contains(&format!(" {expected}\n")), "{free}");
    }
    Ok(())
}

fn sockets_are_denied_by_apparmor_and_seccomp(node: &mut Node) -> Result<()> {
    node.wait("sockets", "has ended", has_ended)?;
    let codes = |log: String| -> Vec<String> {
        let words = log.lines().filter_map(|line| line.split(' ').nth(3));
        words.map(str::to_owned).collect()
    };
    // EACCES of AppArmor, and a descriptor; without AppArmor ENOSYS of seccomp.
    let confined = codes(log(node, "sockets", "silent")?);
    assert_eq!(confined[..2], ["13", "13"], "{confined:?}");
    assert!(!["13", "38"].contains(&&*confined[2]), "{confined:?}");
    let free = codes(log(node, "sockets", "free")?);
    assert_eq!(free, ["38", "38", "38"]);
    Ok(())
}

fn each_container_runs_under_its_own_profile(node: &mut Node) -> Result<()> {
    node.wait("profiles", "has ended", has_ended)?;
    let mine = log(node, "profiles", "mine")?;
    assert!(mine.contains("mine (enforce)"), "{mine}");
    assert!(mine.contains("version-1"), "{mine}");
    let whole = log(node, "profiles", "whole")?;
    assert!(whole.contains("unconfined"), "{whole}");
    let small = log(node, "profiles", "small")?;
    assert!(small.contains("rubelet-default (enforce)"), "{small}");

    let seen = node.wait("refused", "is refused", |pod| {
        waits_for(pod, "absent") == "CreateContainerError"
    })?;
    let message = container(&seen, "absent")["state"]["waiting"]["message"].to_string();
    assert!(
        message.contains("apparmor profile not found of-another-node"),
        "{message}"
    );
    Ok(())
}

fn image_volumes_are_writable_and_hostile_ones_refused(node: &mut Node) -> Result<()> {
    node.wait("volumes", "has ended", has_ended)?;
    let volumes = log(node, "volumes", "main")?;
    for expected in ["of the image", "written", "read-only", "1"] {
        assert!(volumes.contains(&format!(" {expected}\n")), "{volumes}");
    }
    let seen = node.wait("hostile", "is refused", |pod| {
        waits_for(pod, "main") == "CreateContainerError"
    })?;
    let message = container(&seen, "main")["state"]["waiting"]["message"].to_string();
    assert!(message.contains("at or below /proc"), "{message}");
    Ok(())
}

fn hooks_are_confined_and_the_pod_can_be_stopped(node: &mut Node) -> Result<()> {
    let seen = node.wait("lasting", "is ready", is_ready)?;
    let look = "grep -q 'rubelet-default (enforce)' \
        /var/log/pods/default_lasting-guest_*/lasting/0.log && exit 0";
    node.run(&format!(
        "for i in $(seq 100); do {look}; sleep 0.2; done; exit 1"
    ))?;
    let cgroup = node.cgroup(&seen, "lasting")?;
    node.remove("lasting", &cgroup)?;
    Ok(())
}

/// All pods are applied before the first one is checked, so that they start concurrently.
#[test]
fn apparmor_confines_containers() -> Result<()> {
    let image = Image::default().apparmor()?.file("/etc/mine", MINE);
    let mut node = Node::start(image, "cgroupfs")?;
    node.run("apparmor_parser --skip-cache /etc/mine")?;

    apply_tries(&mut node)?;
    apply_sockets(&mut node)?;
    apply_profiles(&mut node)?;
    apply_volumes(&mut node)?;
    apply_lasting(&mut node)?;

    the_default_profile_denies_mounts_and_writes(&mut node)?;
    sockets_are_denied_by_apparmor_and_seccomp(&mut node)?;
    each_container_runs_under_its_own_profile(&mut node)?;
    image_volumes_are_writable_and_hostile_ones_refused(&mut node)?;
    hooks_are_confined_and_the_pod_can_be_stopped(&mut node)?;

    let findings = node.run("rubelet doctor --config /etc/rubelet.yaml || true")?;
    assert!(!findings.contains("AppArmor"), "{findings}");
    Ok(())
}

#[test]
fn without_apparmor_parser_containers_run_unconfined() -> Result<()> {
    let mut node = Node::start(Image::default(), "cgroupfs")?;
    let show = "cat /proc/self/attr/current";
    node.apply(&once("silent", &[shell("silent", show)]))?;
    let asked = under("asked", show, "RuntimeDefault", None);
    node.apply(&once("asked", &[asked]))?;
    node.wait("silent", "has ended", has_ended)?;
    let silent = log(&mut node, "silent", "silent")?;
    assert!(silent.contains("unconfined"), "{silent}");
    let seen = node.wait("asked", "is refused", |pod| {
        waits_for(pod, "asked") == "CreateContainerError"
    })?;
    let message = container(&seen, "asked")["state"]["waiting"]["message"].to_string();
    assert!(message.contains("rubelet-default"), "{message}");
    let findings = node.run("rubelet doctor --config /etc/rubelet.yaml || true")?;
    assert!(
        findings.contains("install the package apparmor"),
        "{findings}"
    );
    let log = node.run("cat /run/agent.log")?;
    assert!(log.contains("apparmor_parser"), "{log}");
    Ok(())
}
