//! The disk of volumes and logs fills up, or has no inodes any more.

use rubelet_testbed::disk::SmallDisk;
use serde_json::{Value, json};

use super::{evicted, relieved, start_modest};
use crate::joined::{Joined, bound, with_volume};

/// The disk, in KiB.
const DISK: u32 = 256 << 10;
const INODES: u32 = 4096;

/// A node with such a disk and this threshold. The disk is unmounted with its value.
fn on_small_disk(hard: &Value) -> (Joined, SmallDisk) {
    let mut disk = None;
    let joined = Joined::start_prepared(
        "worker",
        |builder| {
            builder
                .config("evictionHard", hard.clone())
                .config("evictionPressureTransitionPeriod", "5s")
        },
        |agent| {
            let root = agent.root_dir();
            std::fs::create_dir_all(&root).unwrap();
            disk = Some(SmallDisk::mount_with_inodes(&root, DISK, INODES).unwrap());
        },
    );
    (joined, disk.unwrap())
}

#[test]
fn the_pod_that_fills_the_disk_is_evicted_and_only_that_one() {
    let (joined, _disk) = on_small_disk(&json!({ "nodefs.available": "64Mi" }));
    start_modest(&joined);
    // With a pause, so that it does not fill the disk before anybody can look.
    let script = "i=0; while [ $i -lt 240 ]; do dd if=/dev/zero of=/data/$i bs=1M count=1; i=$((i+1)); \
                  sleep 0.05; done; sleep 1000";
    joined.create(&with_volume(bound("greedy", script), &json!({})));
    let ended = evicted(&joined);
    let message = ended["status"]["message"].as_str().unwrap();
    let expected =
        "The node was low on resource: ephemeral-storage. Threshold quantity: 64Mi, available: ";
    assert!(message.starts_with(expected), "{message}");
    relieved(&joined, "DiskPressure", "nodefs.available");
}

#[test]
fn the_pod_that_takes_all_inodes_is_evicted_and_only_that_one() {
    let (joined, _disk) = on_small_disk(&json!({ "nodefs.inodesFree": "1000" }));
    start_modest(&joined);
    let script = "i=0; while [ $i -lt 3900 ]; do : > /data/$i; i=$((i+1)); done; sleep 1000";
    joined.create(&with_volume(bound("greedy", script), &json!({})));
    let ended = evicted(&joined);
    let message = ended["status"]["message"].as_str().unwrap();
    let expected = "The node was low on resource: inodes. Threshold quantity: 1k, available: ";
    assert!(message.starts_with(expected), "{message}");
    relieved(&joined, "DiskPressure", "nodefs.inodesFree");
}
