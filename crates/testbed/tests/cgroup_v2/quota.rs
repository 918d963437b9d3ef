//! Volumes on a disk with project quotas, which few kernels of test machines have.

use anyhow::Result;
use rubelet_needs::PROJECT_QUOTAS;
use rubelet_testbed::manifest::{pod, shell, with};
use rubelet_testbed::status::{ended, has_ended};
use rubelet_testbed::vm::{Disk, Image};
use serde_json::json;

use crate::guest::program;
use crate::node::{Node, image_with_agent};

const CONFIGURATION: &str = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n\
    cgroupDriver: cgroupfs\nfeatureGates: {LocalStorageCapacityIsolationFSQuotaMonitoring: true}\n";

/// Mounts a file system of the other kind that has them, which lies in memory.
const XFS: &str = "truncate -s 512M /run/xfs && mkfs.xfs -q /run/xfs && losetup /dev/loop0 /run/xfs && mkdir /xfs && \
    mount -t xfs -o prjquota /dev/loop0 /xfs && chmod 1777 /xfs";

/// Writes more than the limit, through a name that is gone: nobody who adds up files would see it.
const WRITES: &str = "exec 3> /data/file; rm /data/file
    dd if=/dev/zero bs=64k count=320 >&3 2> /dev/null && exit 1
    echo written $(($(stat -L -c %b /proc/self/fd/3) / 2048)) MiB";

#[test]
fn volumes_are_counted_and_held_to_their_limits_by_project_quotas() -> Result<()> {
    let image = image_with_agent(Image::default(), "cgroupfs")?
        .modules(&Disk::MODULES)
        .modules(&["quota_v2"])
        .xfs()?
        .file("/etc/rubelet.yaml", CONFIGURATION)
        .program("/test-host", program("rubelet-host", &["--lib"])?)
        .program("/test-volumes", program("rubelet-volumes", &["--lib"])?);
    let disk = Disk::with_project_quotas(512)?;
    let mut node = Node::boot_on(&image, &disk)?;
    node.run(XFS)?;
    // XFS counts removed files for a moment longer, so there the bound of a removed volume may stay.
    for (place, tests) in [
        ("/tmp", "/test-host project_quota::"),
        ("/tmp", "/test-volumes each_volume_has_a_bound"),
        ("/xfs", "/test-host project_quota::"),
    ] {
        let output = node.run(&format!("{PROJECT_QUOTAS}={place} {tests} --nocapture"))?;
        assert!(!output.contains("skipped:"), "{output}");
    }

    node.load_images()?;
    node.start_agent()?;
    let mounts = json!({ "volumeMounts": [{ "name": "data", "mountPath": "/data" }] });
    let spec = json!({
        "hostUsers": false,
        "restartPolicy": "Never",
        "containers": [with(shell("main", WRITES), &mounts)],
        "volumes": [{ "name": "data", "emptyDir": { "sizeLimit": "8Mi" } }],
    });
    node.apply(&pod("writes", &spec))?;
    let seen = node.wait("writes", "has ended", has_ended)?;
    let log = node.run("cat /var/log/pods/default_writes-guest_*/main/0.log")?;
    assert_eq!(ended(&seen, "main")["exitCode"], 0, "{log}");
    // Its directory takes a block, too.
    assert!(log.contains("written 7 MiB"), "{log}");
    Ok(())
}
