//! A guest with systemd, logind and the units that are shipped shuts down.

use anyhow::Result;
use rubelet_testbed::manifest::{pod, shell, with};
use rubelet_testbed::status::runs;
use rubelet_testbed::vm::{Disk, Image};
use serde_json::{Value, json};

use crate::node::{Node, image_with_agent};

const UNIT: &str = include_str!("../../../../packaging/rubelet.service");
/// There is no journal.
const LOG: &str =
    "[Service]\nStandardOutput=append:/run/agent.log\nStandardError=append:/run/agent.log\n";

/// The shipped unit's configuration. The periods are longer than logind's own limit of 5 s.
const CONFIGURATION: &str = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n\
    cgroupDriver: systemd\nstaticPodPath: /manifests\nshutdownGracePeriod: 300s\n\
    shutdownGracePeriodCriticalPods: 100s\n";

/// The priority of `system-cluster-critical`.
const CRITICAL: u32 = 2_000_000_000;

/// A pod that writes its name into files on the disk when it has started and when it ends.
fn notes(name: &str, priority: u32) -> Value {
    let script = format!(
        "trap 'echo {name} >> /kept/ended; exit' TERM; echo {name} >> /kept/started; \
         sleep 1000000 & wait"
    );
    let mounts = json!({ "volumeMounts": [{ "name": "kept", "mountPath": "/kept" }] });
    let kept = json!({ "path": "/var/lib/kept", "type": "DirectoryOrCreate" });
    let spec = json!({
        "priority": priority,
        "containers": [with(shell("main", &script), &mounts)],
        "volumes": [{ "name": "kept", "hostPath": kept }],
    });
    pod(name, &spec)
}

/// Boots and waits until both pods have started as often as this in all.
fn boot(image: &Image, disk: &Disk, boots: usize) -> Result<Node> {
    let mut node = Node::boot_on(image, disk)?;
    node.run("ln -s /usr/local/bin/rubelet /usr/bin/rubelet")?;
    if boots == 1 {
        node.load_images()?;
        node.apply(&notes("critical", CRITICAL))?;
        node.apply(&notes("web", 0))?;
    }
    node.start_unit()?;
    for name in ["critical", "web"] {
        node.wait(name, "runs", |pod| runs(pod, "main"))?;
        let count = format!("[ \"$(grep -c {name} /var/lib/kept/started)\" = {boots} ]");
        node.wait_for(&count)?;
    }
    Ok(node)
}

#[test]
fn a_shutdown_of_the_machine_waits_until_pods_have_ended() -> Result<()> {
    let image = image_with_agent(Image::default().logind()?, "systemd")?
        .modules(&Disk::MODULES)
        .file("/etc/systemd/system/rubelet.service", UNIT)
        .file("/etc/systemd/system/rubelet.service.d/log.conf", LOG)
        .file("/etc/rubelet/config.yaml", CONFIGURATION);
    let disk = Disk::create(512)?;

    let mut node = boot(&image, &disk, 1)?;
    node.wait_for("systemd-inhibit --list --no-legend | grep -q 'rubelet.*shutdown.*delay'")?;
    let limit = "busctl get-property org.freedesktop.login1 /org/freedesktop/login1 \
        org.freedesktop.login1.Manager InhibitDelayMaxUSec";
    node.wait_for(&format!("[ \"$({limit})\" = 't 300000000' ]"))?;
    node.power_off()?;

    let mut node = boot(&image, &disk, 2)?;
    let ended = node.run("cat /var/lib/kept/ended")?;
    assert_eq!(ended, "web\ncritical\n", "critical pods end last");
    Ok(())
}
