//! Rotation of the logs of running containers. The test writes the logs in place of the runtime.

use std::{fs, path::PathBuf, time::Duration};

use rubelet_cri::CriErrorKind;
use rubelet_logs::rotation::RotationPolicy;
use tempfile::TempDir;
use tokio::time::sleep;

use super::node::{Node, seconds};
use crate::log_rotation::LogRotationSettings;

const REOPEN: &str = "ReopenContainerLog";
const INTERVAL: Duration = Duration::from_secs(10);

/// A node with a running pod, whose container has an empty log.
struct Logged {
    node: Node,
    uid: String,
    directory: TempDir,
}

impl Logged {
    async fn new() -> Self {
        let mut node = Node::new();
        node.kill().await;
        node.log_rotation = Some(LogRotationSettings {
            policy: RotationPolicy {
                max_bytes: 100,
                max_files: 3,
            },
            interval: INTERVAL,
            workers: 1,
        });
        let directory = tempfile::tempdir().unwrap();
        node.host.set_log_dir(directory.path());
        node.start();
        let uid = node.apply("web", "containers: [{name: app, image: 'app:1'}]");
        node.until_running().await;
        let logged = Self {
            node,
            uid,
            directory,
        };
        fs::create_dir_all(logged.log(0).parent().unwrap()).unwrap();
        logged.write(0, 0);
        logged
    }

    fn log(&self, attempt: u32) -> PathBuf {
        let path = format!("{}/app/{attempt}.log", self.uid);
        self.directory.path().join(path)
    }

    fn write(&self, attempt: u32, bytes: usize) {
        fs::write(self.log(attempt), vec![b'x'; bytes]).unwrap();
    }

    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.log(0).parent().unwrap()).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn reopened(&self) -> usize {
        self.node.calls(REOPEN)
    }

    /// Waits for this number of `ReopenContainerLog` calls; returns how long that took.
    async fn until_reopened(&self, times: usize) -> Duration {
        let asked = |node: &Node| node.calls(REOPEN) == times;
        self.node.until("the log is reopened", asked).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_large_log_is_rotated_and_old_files_compressed_and_removed() {
    let logged = Logged::new().await;
    logged.write(0, 99);
    sleep(10 * INTERVAL).await;
    assert_eq!(logged.reopened(), 0);
    for round in 1..=4 {
        logged.write(0, 100);
        assert!(logged.until_reopened(round).await <= 2 * INTERVAL);
        logged.write(0, 0);
        sleep(2 * INTERVAL).await;
        assert_eq!(logged.reopened(), round, "an empty log is not rotated");
    }
    let files = logged.files();
    assert_eq!(files.len(), 3, "{files:?}");
    assert_eq!(files[0], "0.log");
    assert!(
        files[1].ends_with(".gz") && !files[2].ends_with(".gz"),
        "{files:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_fast_growing_log_is_checked_sooner() {
    let logged = Logged::new().await;
    logged.write(0, 100);
    logged.until_reopened(1).await;
    // At that rate a file fills in about ten seconds, and this one in less.
    logged.write(0, 80);
    sleep(INTERVAL).await;
    logged.write(0, 100);
    assert!(logged.until_reopened(2).await <= seconds(5));
}

#[tokio::test(start_paused = true)]
async fn a_log_that_the_runtime_does_not_reopen_keeps_its_name() {
    let logged = Logged::new().await;
    logged
        .node
        .sim
        .fail_next(REOPEN, CriErrorKind::Unavailable, false);
    logged.write(0, 100);
    logged.until_reopened(1).await;
    sleep(seconds(1)).await;
    assert_eq!(logged.files(), ["0.log"]);
    assert!(logged.until_reopened(2).await <= INTERVAL, "it is retried");
    logged.write(0, 0);
    assert_eq!(logged.files().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_rotation_is_finished_by_the_next_agent() {
    let mut logged = Logged::new().await;
    fs::rename(
        logged.log(0),
        logged.log(0).with_extension("log.20240101-000000"),
    )
    .unwrap();
    logged.node.restart().await;
    assert!(logged.until_reopened(1).await <= 2 * INTERVAL);
    // The runtime has no log of this container: the call is not repeated forever.
    sleep(10 * INTERVAL).await;
    assert_eq!(logged.reopened(), 1);
}

#[tokio::test(start_paused = true)]
async fn only_the_log_of_the_running_container_is_rotated() {
    let logged = Logged::new().await;
    logged.write(0, 50);
    logged.node.kill_container(&logged.uid, "app", 1);
    logged.node.until_running().await;
    logged.write(0, 100);
    logged.write(1, 50);
    sleep(10 * INTERVAL).await;
    assert_eq!(logged.reopened(), 0);
    logged.write(1, 100);
    logged.until_reopened(1).await;
    let files = logged.files();
    assert_eq!(files[0], "0.log");
    assert!(
        files[1].starts_with("1.log.") && files.len() == 2,
        "{files:?}"
    );
}
