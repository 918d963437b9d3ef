//! Garbage collection of images, on a disk that the test fills.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use rubelet_cri::CriErrorKind;
use rubelet_host::usage::Usage;
use rubelet_sim::{EntryKind, Subject};
use tokio::time::sleep;

use super::node::{Node, seconds};
use crate::image_collection::{ImageCollectionPolicy, ImageCollectionSettings};

const PERIOD: Duration = Duration::from_secs(5 * 60);
const POD: &str = "containers: [{name: app, image: 'app:1'}]";

/// A node with the images `app:1` and `app:2` on an empty disk.
struct Disk {
    node: Node,
    used_percent: Arc<Mutex<u64>>,
}

impl Disk {
    async fn new(max_age: Option<Duration>) -> Self {
        let mut node = Node::new();
        node.kill().await;
        let used_percent = Arc::new(Mutex::new(0));
        let used = Arc::clone(&used_percent);
        node.image_collection = Some(ImageCollectionSettings {
            policy: ImageCollectionPolicy {
                high_percent: 85,
                low_percent: 80,
                min_age: seconds(120),
                max_age,
            },
            disk: Arc::new(move |path| {
                assert_eq!(path.to_str(), Some("/var/lib/sim/images"));
                Ok(Usage {
                    available: 100 - *used.lock(),
                    capacity: 100,
                })
            }),
        });
        node.start();
        Self { node, used_percent }
    }

    /// Runs a pod of `app:1`.
    async fn run_a_pod(&self) {
        self.node.apply("web", POD);
        self.node.until_running().await;
    }

    fn fill(&self, percent: u64) {
        *self.used_percent.lock() = percent;
    }

    fn removed(&self) -> Vec<String> {
        let oracle = self.node.sim.oracle();
        let entries = oracle.entries().iter();
        entries
            .filter_map(|entry| match &entry.what {
                EntryKind::ImageRemoved(id) => Some(id.clone()),
                _ => None,
            })
            .collect()
    }

    fn node_events(&self, reason: &str) -> usize {
        let events = self.node.recorder().board().list();
        let of_reason = events
            .iter()
            .filter(|(_, _, event)| &*event.reason == reason);
        of_reason.count()
    }
}

#[tokio::test(start_paused = true)]
async fn only_unused_images_are_removed_and_only_from_a_full_disk() {
    let disk = Disk::new(None).await;
    disk.run_a_pod().await;
    sleep(2 * PERIOD).await;
    disk.fill(84);
    sleep(2 * PERIOD).await;
    assert_eq!(disk.removed().len(), 0);
    let lists = disk.node.calls("ListImages");
    assert!(lists <= 8, "{lists} lists in twenty minutes");
    disk.fill(85);
    disk.node
        .within(seconds(15), "the image is removed", |_| {
            !disk.removed().is_empty()
        })
        .await;
    sleep(2 * PERIOD).await;
    assert_eq!(disk.removed().len(), 1, "the other one is in use");
    assert!(disk.node.is_running("web"));
    let metrics = disk.node.metrics.render();
    let count = "kubelet_image_garbage_collected_total{reason=\"space\"} 1";
    assert!(metrics.contains(count), "{metrics}");
}

#[tokio::test(start_paused = true)]
async fn a_disk_full_at_start_is_cleared_after_the_minimum_image_age() {
    let disk = Disk::new(None).await;
    disk.fill(85);
    disk.run_a_pod().await;
    sleep(seconds(110)).await;
    assert_eq!(
        disk.removed().len(),
        0,
        "new images are kept for pods that are about to start"
    );
    sleep(seconds(30)).await;
    assert_eq!(disk.removed().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_stays_full_is_reported_and_retried_rarely() {
    let disk = Disk::new(None).await;
    disk.run_a_pod().await;
    sleep(PERIOD).await;
    // More must be freed than the size of the unused image.
    disk.node.sim.edit_image("app:2", |image| image.size = 1);
    disk.fill(99);
    disk.node
        .within(seconds(15), "it is reported", |_| {
            disk.node_events("FreeDiskSpaceFailed") > 0
        })
        .await;
    assert_eq!(disk.removed().len(), 1);
    let lists = disk.node.calls("ListImages");
    sleep(4 * PERIOD).await;
    let lists = disk.node.calls("ListImages") - lists;
    assert!((3..=5).contains(&lists), "{lists} lists in twenty minutes");
    assert!(disk.node_events("ImageGCFailed") > 0);
}

#[tokio::test(start_paused = true)]
async fn an_image_that_a_pod_waits_for_is_kept() {
    let disk = Disk::new(None).await;
    let hang = disk.node.sim.hang("RunPodSandbox", Subject::any());
    disk.node.apply("web", POD);
    let other = "initContainers: [{name: init, image: 'docker.io/library/app:2'}], containers: [{name: app, image: 'app:1'}]";
    disk.node.apply("other", other);
    sleep(seconds(1)).await;
    disk.fill(99);
    sleep(seconds(60)).await;
    assert_eq!(disk.removed(), Vec::<String>::new());
    drop(hang);
}

#[tokio::test(start_paused = true)]
async fn an_image_unused_for_long_is_removed() {
    let disk = Disk::new(Some(Duration::from_secs(3600))).await;
    disk.run_a_pod().await;
    sleep(Duration::from_secs(3500)).await;
    assert_eq!(disk.removed().len(), 0);
    sleep(2 * PERIOD).await;
    assert_eq!(disk.removed().len(), 1);
    let metrics = disk.node.metrics.render();
    let count = "kubelet_image_garbage_collected_total{reason=\"age\"} 1";
    assert!(metrics.contains(count), "{metrics}");
}

#[tokio::test(start_paused = true)]
async fn a_failed_image_removal_is_retried_later() {
    let disk = Disk::new(None).await;
    disk.run_a_pod().await;
    sleep(PERIOD).await;
    for _ in 0..2 {
        disk.node
            .sim
            .fail_next("RemoveImage", CriErrorKind::Unavailable, false);
    }
    disk.fill(85);
    sleep(seconds(30)).await;
    assert_eq!(
        disk.node_events("ImageGCFailed"),
        0,
        "a single failure is not reported"
    );
    sleep(PERIOD).await;
    assert_eq!(disk.node_events("ImageGCFailed"), 1);
    assert_eq!(disk.removed().len(), 0);
    sleep(PERIOD).await;
    assert_eq!(disk.removed().len(), 1);
}
