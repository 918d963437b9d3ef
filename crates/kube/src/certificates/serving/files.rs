//! A certificate and its key in two files that another program may replace.

use crate::certificates::pair::Pair;
use crate::certificates::store::read_pair;
use parking_lot::Mutex;
use rubelet_base::ErrorChain;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::Instant;

/// Minimum time between checks of the files.
const PAUSE: Duration = Duration::from_secs(1);

/// Identifies a version of a file: inode, size, and time of the last change.
type FileStamp = Option<(u64, u64, i64, i64)>;

/// Two files, and how they looked when they were last read.
#[derive(Debug)]
pub(super) struct CertificateFiles {
    certificate: PathBuf,
    key: PathBuf,
    seen: Mutex<ReloadState>,
}

#[derive(Debug)]
struct ReloadState {
    looked: Option<Instant>,
    read: [FileStamp; 2],
    /// Stamps of a pair that could not be used: reported once.
    refused: Option<[FileStamp; 2]>,
}

impl CertificateFiles {
    /// Notes how the files look. Call it before they are read.
    pub(super) fn new(certificate: &Path, key: &Path) -> Self {
        Self {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            seen: Mutex::new(ReloadState {
                looked: None,
                read: [stamp(certificate), stamp(key)],
                refused: None,
            }),
        }
    }

    /// The pair in the files, if they have changed since and can be used.
    pub(super) fn changed(&self) -> Option<Pair> {
        let mut seen = self.seen.lock();
        let now = Instant::now();
        if seen.looked.is_some_and(|looked| now < looked + PAUSE) {
            return None;
        }
        seen.looked = Some(now);
        let stamps = [stamp(&self.certificate), stamp(&self.key)];
        if stamps == seen.read {
            return None;
        }
        match read_pair(&self.certificate, &self.key) {
            Ok(pair) => {
                tracing::info!("Reloaded {}", self.certificate.display());
                seen.read = stamps;
                seen.refused = None;
                Some(pair)
            }
            Err(error) => {
                if seen.refused.replace(stamps) != Some(stamps) {
                    let error = ErrorChain(&error);
                    tracing::warn!(
                        "Cannot reload the serving certificate; the previous one stays in use: {error}"
                    );
                }
                None
            }
        }
    }
}

fn stamp(path: &Path) -> FileStamp {
    let found = std::fs::metadata(path).ok()?;
    Some((found.ino(), found.size(), found.mtime(), found.mtime_nsec()))
}

#[cfg(test)]
mod tests {
    use super::{CertificateFiles, PAUSE};
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
        let directory = tempfile::tempdir().unwrap();
        let (certificate, key) = (directory.path().join("c"), directory.path().join("k"));
        let (one, two) = (pair("one"), pair("two-longer"));
        fs::write(&certificate, one.chain_pem()).unwrap();
        fs::write(&key, one.key_pem()).unwrap();
        let files = CertificateFiles::new(&certificate, &key);
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
