//! The file by which logind delays shutdowns for long enough. It has the name of the kubelet's: each
//! of the two can take over from the other.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

const NAME: &str = "99-kubelet.conf";

/// The file can't be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}", path.display())]
pub struct DropInError {
    path: PathBuf,
    source: io::Error,
}

/// Writes the file, without a moment in which it is incomplete.
pub(super) async fn write(directory: &Path, limit: Duration) -> Result<(), DropInError> {
    let path = directory.join(NAME);
    let text = text(limit);
    let written = {
        let path = path.clone();
        tokio::task::spawn_blocking(move || replace(&path, &text)).await
    };
    match written {
        Ok(Ok(())) => Ok(()),
        Ok(Err(source)) => Err(DropInError { path, source }),
        Err(ended) => {
            let source = io::Error::other(ended);
            Err(DropInError { path, source })
        }
    }
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    // Other names than *.conf are ignored.
    let temporary = path.with_extension("new");
    fs::write(&temporary, text)?;
    fs::rename(&temporary, path)
}

fn text(limit: Duration) -> String {
    let seconds = limit.as_secs() + u64::from(limit.subsec_nanos() > 0);
    format!(
        "# Written by rubelet, so that pods have their time when the node shuts down: \
         shutdownGracePeriod.\n[Login]\nInhibitDelayMaxSec={seconds}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_file_is_replaced_and_says_whole_seconds() {
        let dir = tempfile::Builder::new()
            .prefix("rbt-host-")
            .tempdir()
            .unwrap();
        let drop_ins = dir.path().join("logind.conf.d");
        for (limit, line) in [(30_000, "=30\n"), (1500, "=2\n")] {
            write(&drop_ins, Duration::from_millis(limit))
                .await
                .unwrap();
            let text = fs::read_to_string(drop_ins.join(NAME)).unwrap();
            assert!(text.contains("[Login]\n") && text.ends_with(line), "{text}");
        }
        assert_eq!(fs::read_dir(&drop_ins).unwrap().count(), 1);
        // A file in the place of the directory.
        let error = write(&drop_ins.join(NAME), Duration::from_secs(1)).await;
        let error = error.unwrap_err().to_string();
        assert!(
            error.starts_with("cannot write ") && error.contains(NAME),
            "{error}"
        );
    }
}
