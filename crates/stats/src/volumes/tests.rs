//! Tests of `volumes`.

use std::{
    future::pending,
    sync::atomic::{AtomicU64, Ordering},
};

use jiff::Timestamp;
use tokio::time::advance;

use super::*;

const MINUTE: Duration = Duration::from_secs(60);

fn at(path: &Path) -> VolumeDirectory {
    VolumeDirectory {
        name: "volume".into(),
        path: path.to_owned(),
        is_ephemeral: true,
        may_have_quota: true,
    }
}

fn pod(uid: &str, volumes: &[&str]) -> PodTarget {
    let directory = |name: &&str| VolumeDirectory {
        name: (*name).into(),
        path: (*name).into(),
        is_ephemeral: true,
        may_have_quota: false,
    };
    PodTarget {
        namespace: "default".into(),
        name: uid.into(),
        uid: uid.into(),
        started_at: Timestamp::UNIX_EPOCH,
        cgroups: Vec::new(),
        containers: Vec::new(),
        has_network: true,
        volumes: volumes.iter().map(directory).collect(),
        etc_hosts: None,
    }
}

/// A disk on which the n-th volume that is added up uses n bytes.
#[derive(Default)]
struct Disk {
    measured: Arc<AtomicU64>,
}

impl Disk {
    fn measured(&self) -> u64 {
        self.measured.load(Ordering::Relaxed)
    }

    /// Volumes that begin with `hang` never end, `fail` fails, and `slow` takes 30 s.
    fn measure(&self) -> MeasureVolume {
        let measured = Arc::clone(&self.measured);
        Arc::new(move |directory| {
            let count = measured.fetch_add(1, Ordering::Relaxed) + 1;
            spawn(async move {
                match &*directory.name {
                    name if name.starts_with("hang") => pending().await,
                    "fail" => return Err(io::Error::other("no")),
                    "slow" => tokio::time::sleep(MINUTE / 2).await,
                    _ => {}
                }
                Ok(FsSample {
                    used: Some(count),
                    ..FsSample::default()
                })
            })
        })
    }
}

fn used(found: &VolumeReadings, uid: &str, name: &str) -> Option<u64> {
    found.get(&(uid.into(), name.into()))?.used
}

#[tokio::test(start_paused = true)]
async fn volumes_are_added_up_on_request_and_not_twice_in_a_period() {
    let (disk, mut meter) = (Disk::default(), VolumeMeter::default());
    let measure = disk.measure();
    let pods = [pod("u1", &["data"])];
    let found = meter.read(&pods, MINUTE, &measure).await;
    assert_eq!(used(&found, "u1", "data"), Some(1));
    advance(MINUTE / 2).await;
    let found = meter.read(&pods, MINUTE, &measure).await;
    assert_eq!(used(&found, "u1", "data"), Some(1));
    // Nobody asks for a day.
    advance(MINUTE * 1440).await;
    assert_eq!(disk.measured(), 1);
    let found = meter.read(&pods, MINUTE, &measure).await;
    assert_eq!(used(&found, "u1", "data"), Some(2));
    // A volume that is gone is forgotten, and a new one does not wait.
    let other = [pod("u2", &["data"])];
    advance(Duration::from_secs(1)).await;
    let found = meter.read(&other, MINUTE, &measure).await;
    assert_eq!(found.len(), 1);
    assert_eq!(used(&found, "u2", "data"), Some(3));
}

#[tokio::test(start_paused = true)]
async fn a_volume_that_hangs_or_fails_costs_its_own_numbers() {
    let (disk, mut meter) = (Disk::default(), VolumeMeter::default());
    let measure = disk.measure();
    let pods = [pod("u1", &["hang"]), pod("u2", &["fail", "data"])];
    meter.read(&pods, MINUTE, &measure).await;
    advance(PATIENCE).await;
    let found = meter.read(&pods, MINUTE, &measure).await;
    assert!(used(&found, "u2", "data").is_some());
    assert_eq!(found.len(), 1);
    let before = disk.measured();
    advance(MINUTE * 10).await;
    meter.read(&pods, MINUTE, &measure).await;
    assert_eq!(
        disk.measured() - before,
        2,
        "the one that hangs is not tried again"
    );
}

#[tokio::test(start_paused = true)]
async fn volumes_that_hang_are_not_added_up_without_end() {
    let (disk, mut meter) = (Disk::default(), VolumeMeter::default());
    let measure = disk.measure();
    let names: Vec<String> = (0..20).map(|number| format!("hang{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let pods = [pod("u1", &names)];
    for _ in 0..20 {
        meter.read(&pods, MINUTE, &measure).await;
        advance(MINUTE * 2).await;
    }
    assert_eq!(usize::try_from(disk.measured()).unwrap(), MOST_AT_ONCE);
}

#[tokio::test(start_paused = true)]
async fn a_large_volume_is_added_up_less_often_and_has_its_numbers_in_the_end() {
    let (disk, mut meter) = (Disk::default(), VolumeMeter::default());
    let measure = disk.measure();
    let pods = [pod("u1", &["slow"])];
    let found = meter.read(&pods, MINUTE, &measure).await;
    assert_eq!(used(&found, "u1", "slow"), None);
    let mut found = None;
    for _ in 0..4 {
        advance(MINUTE / 6).await;
        let known = meter.read(&pods, MINUTE, &measure).await;
        found = used(&known, "u1", "slow");
    }
    assert_eq!(found, Some(1));
    for _ in 0..9 {
        advance(MINUTE).await;
        meter.read(&pods, MINUTE, &measure).await;
    }
    assert_eq!(disk.measured(), 1);
    advance(MINUTE * 6).await;
    meter.read(&pods, MINUTE, &measure).await;
    assert_eq!(disk.measured(), 2);
}

#[test]
fn the_files_of_a_directory_are_added_up() {
    let root = tempfile::Builder::new()
        .prefix("rbt-stats-")
        .tempdir()
        .unwrap();
    let path = root.path().join("volume");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("file"), vec![1; 64 << 10]).unwrap();
    let (clock, metrics) = (
        Clock::following_tokio(Timestamp::UNIX_EPOCH),
        NodeMetrics::new(),
    );
    let found = measure(&at(&path), &clock, &metrics).unwrap();
    assert!(found.used >= Some(64 << 10) && found.used < found.capacity);
    assert_eq!(found.inodes_used, Some(2));
    assert!(measure(&at(&root.path().join("none")), &clock, &metrics).is_err());
    let text = metrics.render();
    let line = "kubelet_volume_metric_collection_duration_seconds_count{metric_source=\"du\"} 1";
    assert!(text.contains(line), "{text}");
}

#[test]
fn a_volume_in_memory_knows_its_numbers() {
    // `/dev/shm` is one.
    if !is_mount_point(Path::new("/dev/shm")).is_ok_and(|found| found) {
        return;
    }
    let (clock, metrics) = (
        Clock::following_tokio(Timestamp::UNIX_EPOCH),
        NodeMetrics::new(),
    );
    let found = measure(&at(Path::new("/dev/shm")), &clock, &metrics).unwrap();
    assert!(found.capacity > Some(0) && found.used.is_some());
    assert!(!metrics.render().contains("metric_source"));
}
