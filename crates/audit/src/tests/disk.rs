//! The file: its mode, its rotation, and disks that are full, slow or taken away.

use std::{
    ffi::OsStr,
    fs, io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, mpsc},
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::Value;

use crate::{AuditLevel, AuditLog, AuditObserver, AuditPolicy, Rotation};

const LARGE: Rotation = Rotation {
    max_bytes: 100 << 20,
    max_backups: 10,
    max_age: Duration::ZERO,
};

fn open(path: &Path, rotation: Rotation) -> Arc<AuditLog> {
    let policy = AuditPolicy::of_level(AuditLevel::Metadata);
    AuditLog::open(path, rotation, policy, Arc::new(())).unwrap()
}

fn event(number: usize) -> String {
    format!("{{\"number\":{number}}}\n")
}

fn numbers(path: &Path) -> Vec<u64> {
    let text = fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| {
            let event: Value = serde_json::from_str(line).expect(line);
            event["number"].as_u64().unwrap()
        })
        .collect()
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[tokio::test]
async fn the_file_is_for_its_owner_only_and_goes_on_where_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("below/audit.log");
    for number in 0..2 {
        let log = open(&path, LARGE);
        log.record(event(number));
        log.close().await;
        assert_eq!(log.problem(), None);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    }
    assert_eq!(numbers(&path), [0, 1]);
}

#[tokio::test]
async fn a_part_of_a_line_does_not_spoil_the_next_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.log");
    fs::write(&path, "{\"numb").unwrap();
    let log = open(&path, LARGE);
    log.record(event(7));
    log.close().await;
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text, "{\"numb\n{\"number\":7}\n");
}

#[test]
fn links_and_what_is_no_file_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("precious");
    fs::write(&target, "").unwrap();
    let link = directory.path().join("link");
    symlink(&target, &link).unwrap();
    let fifo = directory.path().join("fifo");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    for path in [link, fifo, directory.path().to_owned()] {
        let policy = AuditPolicy::default();
        let error = AuditLog::open(&path, LARGE, policy, Arc::new(())).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("cannot open the audit log {}", path.display())
        );
    }
}

#[tokio::test]
async fn a_large_file_is_put_aside_and_only_the_newest_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.log");
    let rotation = Rotation {
        max_bytes: 40,
        max_backups: 3,
        ..LARGE
    };
    for number in 0..20 {
        // Each is a batch of its own.
        let log = open(&path, rotation);
        log.record(event(number));
        log.close().await;
        assert_eq!(log.problem(), None);
    }
    let files = files(directory.path());
    assert_eq!(files.len(), 4, "{files:?}");
    let mut kept = Vec::new();
    for file in &files {
        let stat = fs::metadata(file).unwrap();
        assert!(stat.size() <= 40);
        assert_eq!(stat.permissions().mode() & 0o777, 0o600);
        kept.extend(numbers(file));
    }
    kept.sort_unstable();
    let newest: Vec<u64> = (20 - kept.len() as u64..20).collect();
    assert_eq!(kept, newest);
}

#[tokio::test]
async fn a_file_that_was_removed_is_made_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.log");
    let log = open(&path, LARGE);
    fs::remove_file(&path).unwrap();
    log.record(event(1));
    log.close().await;
    assert_eq!(numbers(&path), [1]);
}

/// Counts what is lost, by reason.
#[derive(Default)]
struct Losses(Mutex<Vec<(&'static str, u64)>>);

impl AuditObserver for Losses {
    fn written(&self, _: u64) {}
    fn dropped(&self, reason: &'static str, events: u64) {
        self.0.lock().push((reason, events));
    }
}

#[tokio::test]
async fn a_disk_that_hangs_costs_events_and_holds_up_nobody() {
    let (release, held) = mpsc::channel::<()>();
    let written = Arc::new(Mutex::new(0));
    let losses = Arc::new(Losses::default());
    let append = {
        let written = Arc::clone(&written);
        move |lines: &[u8]| {
            let _ = held.recv();
            *written.lock() += lines.len();
            Ok(())
        }
    };
    let policy = AuditPolicy::default();
    let log = AuditLog::with(Path::new("/x"), append, policy, losses.clone()).unwrap();
    let line = "x".repeat(10_000) + "\n";
    // Returns at once each time, though nothing is written.
    for _ in 0..2000 {
        log.record(line.clone());
    }
    let lost = losses.0.lock().len();
    let kept = 2000 - lost;
    assert!((1..=4 * 1024 * 1024 / line.len()).contains(&kept), "{kept}");
    assert!(losses.0.lock().iter().all(|loss| *loss == ("queue", 1)));
    assert_eq!(
        log.problem().unwrap(),
        format!("{lost} events are lost since the start")
    );
    drop(release);
    log.close().await;
    assert_eq!(*written.lock(), kept * line.len());
}

#[tokio::test(start_paused = true)]
async fn the_end_does_not_wait_for_a_disk_that_hangs() {
    let (_release, held) = mpsc::channel::<()>();
    let append = move |_: &[u8]| {
        let _ = held.recv();
        Ok(())
    };
    let policy = AuditPolicy::default();
    let log = AuditLog::with(Path::new("/x"), append, policy, Arc::new(())).unwrap();
    log.record(event(1));
    let began = tokio::time::Instant::now();
    log.close().await;
    assert_eq!(began.elapsed().as_secs(), 2);
}

#[tokio::test]
async fn trouble_is_reported_until_it_is_over() {
    let fails = Arc::new(Mutex::new(true));
    let losses = Arc::new(Losses::default());
    let append = {
        let fails = Arc::clone(&fails);
        move |_: &[u8]| match *fails.lock() {
            true => Err(io::Error::other("the disk is gone")),
            false => Ok(()),
        }
    };
    let policy = AuditPolicy::default();
    let log = AuditLog::with(Path::new("/x"), append, policy, losses.clone()).unwrap();
    log.record(event(1));
    while log.problem().is_none() {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        log.problem().unwrap(),
        "cannot write /x: the disk is gone; 1 event is lost since the start"
    );
    *fails.lock() = false;
    log.record(event(2));
    log.close().await;
    assert_eq!(log.problem().unwrap(), "1 event is lost since the start");
    assert_eq!(*losses.0.lock(), [("write", 1)]);
}

/// Names the directory of a small disk in a run of this test in a mount namespace of its own.
const DISK: &str = "RUBELET_TEST_AUDIT_DISK";

#[tokio::test]
async fn a_full_disk_costs_whole_events_and_is_reported() {
    let Some(disk) = std::env::var_os(DISK) else {
        let directory = tempfile::tempdir().unwrap();
        let script = "mount -t tmpfs -o size=64k rubelet-test \"$1\" && exec \"$0\" --exact \
                      tests::disk::a_full_disk_costs_whole_events_and_is_reported";
        // The mount goes with its namespace.
        let run = Command::new("unshare")
            .args([
                OsStr::new("--mount"),
                "sh".as_ref(),
                "-c".as_ref(),
                script.as_ref(),
            ])
            .arg(std::env::current_exe().unwrap())
            .arg(directory.path())
            .env(DISK, directory.path())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&run.stdout);
        let errors = String::from_utf8_lossy(&run.stderr);
        let mounted = run.status.success() || !errors.contains("Operation not permitted");
        if !rubelet_needs::have(mounted, "root, to mount a disk") {
            return;
        }
        assert!(
            run.status.success() && text.contains("1 passed"),
            "{text}{errors}"
        );
        return;
    };
    let disk = Path::new(&disk);
    let (path, filler) = (disk.join("audit.log"), disk.join("filler"));
    let log = open(&path, LARGE);
    log.record(event(1));
    while fs::metadata(&path).unwrap().size() == 0 {
        tokio::task::yield_now().await;
    }
    let _ = fs::write(&filler, vec![0; 1 << 20]);
    // More than the rest of the page that the file has already.
    let long = format!("{{\"number\":2,\"text\":\"{}\"}}\n", "x".repeat(6000));
    log.record(long);
    while log.problem().is_none() {
        tokio::task::yield_now().await;
    }
    let problem = log.problem().unwrap();
    assert!(
        problem.contains("No space left on device") && problem.contains("1 event is lost"),
        "{problem}"
    );
    fs::remove_file(&filler).unwrap();
    log.record(event(3));
    log.close().await;
    assert_eq!(log.problem().unwrap(), "1 event is lost since the start");
    assert_eq!(numbers(&path), [1, 3]);
}
