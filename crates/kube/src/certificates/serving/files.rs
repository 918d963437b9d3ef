//! A certificate and its key in two files that somebody else may replace.

use crate::certificates::pair::Pair;
use crate::certificates::store::read_pair;
use rubelet_base::ErrorChain;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;

/// How often the files are looked at, at most.
const PAUSE: Duration = Duration::from_secs(1);

/// What shows that a file was replaced or written: inode, size, and time of the last change.
type Mark = Option<(u64, u64, i64, i64)>;

/// Two files, and how they looked when they were last read.
#[derive(Debug)]
pub(super) struct Files {
    certificate: PathBuf,
    key: PathBuf,
    seen: Mutex<Seen>,
}

#[derive(Debug)]
struct Seen {
    looked: Option<Instant>,
    read: [Mark; 2],
    /// Marks of a pair that could not be used: said once.
    refused: Option<[Mark; 2]>,
}

impl Files {
    /// Notes how the files look. Call it before they are read.
    pub(super) fn new(certificate: &Path, key: &Path) -> Self {
        Self {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            seen: Mutex::new(Seen {
                looked: None,
                read: [mark(certificate), mark(key)],
                refused: None,
            }),
        }
    }

    /// The pair in the files, if they have changed since and can be used.
    pub(super) fn changed(&self) -> Option<Pair> {
        let mut seen = self.seen.lock().expect("no holder panics");
        let now = Instant::now();
        if seen.looked.is_some_and(|looked| now < looked + PAUSE) {
            return None;
        }
        seen.looked = Some(now);
        let marks = [mark(&self.certificate), mark(&self.key)];
        if marks == seen.read {
            return None;
        }
        match read_pair(&self.certificate, &self.key) {
            Ok(pair) => {
                tracing::info!("{} has changed and is used", self.certificate.display());
                seen.read = marks;
                seen.refused = None;
                Some(pair)
            }
            Err(error) => {
                if seen.refused.replace(marks) != Some(marks) {
                    let error = ErrorChain(&error);
                    tracing::warn!("the old certificate stays in use: {error}");
                }
                None
            }
        }
    }
}

fn mark(path: &Path) -> Mark {
    let found = std::fs::metadata(path).ok()?;
    Some((found.ino(), found.size(), found.mtime(), found.mtime_nsec()))
}

#[cfg(test)]
mod tests {
    use super::{Files, PAUSE};
    use crate::certificates::pair::Pair;
    use crate::certificates::serving::self_signed;
    use jiff::Timestamp;
    use std::fs;

    fn pair(name: &str) -> Pair {
        self_signed(name, Timestamp::constant(1_800_000_000, 0)).unwrap()
    }

    fn name(pair: Option<Pair>) -> Option<String> {
        pair.and_then(|pair| pair.leaf().dns_names.first().cloned())
    }

    #[tokio::test(start_paused = true)]
    async fn a_pair_is_taken_over_when_both_files_fit() {
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) = (folder.path().join("c"), folder.path().join("k"));
        let (one, two) = (pair("one"), pair("two-longer"));
        fs::write(&certificate, one.chain_pem()).unwrap();
        fs::write(&key, one.key_pem()).unwrap();
        let files = Files::new(&certificate, &key);
        assert_eq!(name(files.changed()), None);
        fs::write(&certificate, two.chain_pem()).unwrap();
        assert_eq!(name(files.changed()), None, "looked a moment ago");
        tokio::time::advance(PAUSE).await;
        assert_eq!(name(files.changed()), None, "the key is still the old one");
        fs::write(&key, two.key_pem()).unwrap();
        tokio::time::advance(PAUSE).await;
        assert_eq!(name(files.changed()).as_deref(), Some("two-longer"));
        tokio::time::advance(PAUSE).await;
        assert_eq!(name(files.changed()), None);
        fs::remove_file(&key).unwrap();
        tokio::time::advance(PAUSE).await;
        assert_eq!(
            name(files.changed()),
            None,
            "a file that is gone changes nothing"
        );
    }
}
