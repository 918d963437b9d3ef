//! The times of the last shutdown: metrics, and the kubelet's file by which they survive it.

use std::{fs, io, path::Path};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tracing::warn;

use super::NodeShutdown;

/// Largest file that is read; the kubelet's has less than 100 bytes.
const LARGEST: u64 = 4096;

/// The file, as the kubelet writes it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ShutdownTimes {
    start_time: Option<Timestamp>,
    end_time: Option<Timestamp>,
}

impl NodeShutdown {
    /// Shows the times of the last shutdown.
    pub(super) async fn restore_metrics(&self) {
        let path = self.settings.record.clone();
        let read = tokio::task::spawn_blocking(move || read(&path)).await;
        match read {
            Ok(Ok(times)) => self.show(times),
            Ok(Err(error)) => self.warn("read", &error),
            // The agent stops.
            Err(_) => {}
        }
    }

    /// A shutdown has begun.
    pub(super) async fn note_start(&self, at: Timestamp) {
        self.keep(ShutdownTimes {
            start_time: Some(at),
            end_time: None,
        })
        .await;
    }

    /// All pods have ended, or their time has.
    pub(super) async fn note_end(&self, started: Timestamp) {
        self.keep(ShutdownTimes {
            start_time: Some(started),
            end_time: Some(self.context.clock.now()),
        })
        .await;
    }

    async fn keep(&self, times: ShutdownTimes) {
        self.show(times);
        let path = self.settings.record.clone();
        let written = tokio::task::spawn_blocking(move || write(&path, times)).await;
        if let Ok(Err(error)) = written {
            self.warn("write", &error);
        }
    }

    fn show(&self, times: ShutdownTimes) {
        let metrics = &self.context.metrics.shutdowns;
        metrics.set(known(times.start_time), known(times.end_time));
    }

    fn warn(&self, what: &str, error: &io::Error) {
        let path = self.settings.record.display();
        warn!(%path, %error, "Cannot {what} the times of the last shutdown of the node");
    }
}

/// The kubelet writes an unknown time as the first moment of the year 1.
fn known(time: Option<Timestamp>) -> Option<i64> {
    time.map(Timestamp::as_second).filter(|second| *second > 0)
}

fn read(path: &Path) -> io::Result<ShutdownTimes> {
    use io::Read as _;
    let mut text = String::new();
    match fs::File::open(path) {
        Ok(file) => file.take(LARGEST).read_to_string(&mut text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(ShutdownTimes::default());
        }
        Err(error) => return Err(error),
    };
    Ok(serde_json::from_str(&text)?)
}

fn write(path: &Path, times: ShutdownTimes) -> io::Result<()> {
    let mut text = serde_json::to_value(times)?;
    if times.end_time.is_none() {
        text["endTime"] = "0001-01-01T00:00:00Z".into();
    }
    let temporary = path.with_extension("new");
    fs::write(&temporary, text.to_string())?;
    fs::rename(temporary, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_the_kubelets() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("graceful_node_shutdown_state");
        assert_eq!(read(&path).unwrap(), ShutdownTimes::default());
        let at = |second| Some(Timestamp::from_second(second).unwrap());
        for (start, end) in [(at(100), None), (at(100), at(130))] {
            let times = ShutdownTimes {
                start_time: start,
                end_time: end,
            };
            write(&path, times).unwrap();
            let found = read(&path).unwrap();
            assert_eq!(known(found.start_time), Some(100));
            assert_eq!(known(found.end_time), end.map(Timestamp::as_second));
        }
        // Go's fractions of seconds, and its zero.
        let text =
            r#"{"startTime":"2026-11-27T18:00:00.123456789Z","endTime":"0001-01-01T00:00:00Z"}"#;
        fs::write(&path, text).unwrap();
        let found = read(&path).unwrap();
        assert_eq!(known(found.start_time), Some(1_795_802_400));
        assert_eq!(known(found.end_time), None);
        fs::write(&path, "{").unwrap();
        assert!(read(&path).is_err());
    }
}
