//! Certificates on disk: `PREFIX-TIME.pem` with chain and key, and the link `PREFIX-current.pem` to
//! the newest.
//!
//! Source of the layout: `k8s.io/client-go/util/certificate/certificate_store.go`. Keys are written
//! for their owner only, and every file appears under its name complete or not at all.

use super::key::{KeyError, NodeKey};
use super::pair::{Pair, PairError};
use jiff::Timestamp;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, symlink};
use std::path::{Path, PathBuf};

/// Why a file of certificates can't be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file can't be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file can't be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file holds no certificate with its key.
    #[error("{} does not contain a certificate and its key", path.display())]
    Pair {
        /// Which.
        path: PathBuf,
        /// Why.
        source: PairError,
    },
    /// The link to the newest certificate is something else.
    #[error("{} is not a symbolic link to the newest certificate; move it away", path.display())]
    NoLink {
        /// Which.
        path: PathBuf,
    },
    /// No key could be made.
    #[error("cannot generate a private key")]
    Key(#[source] KeyError),
}

/// Certificates with one prefix in one directory.
#[derive(Clone, Debug)]
pub(crate) struct PairStore {
    directory: PathBuf,
    prefix: &'static str,
}

impl PairStore {
    pub(super) fn new(directory: &Path, prefix: &'static str) -> Self {
        let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
        Self { directory, prefix }
    }

    fn path(&self, tail: &str) -> PathBuf {
        self.directory.join(format!("{}{tail}", self.prefix))
    }

    /// The link to the newest certificate.
    #[must_use]
    pub(crate) fn current_path(&self) -> PathBuf {
        self.path("-current.pem")
    }

    fn updated_path(&self) -> PathBuf {
        self.path("-updated.pem")
    }

    /// The path of the key that waits for its certificate.
    #[must_use]
    pub(crate) fn pending_path(&self) -> PathBuf {
        self.path(".key.tmp")
    }

    /// The newest certificate.
    ///
    /// # Errors
    /// A file is there that can't be read or holds something else.
    pub(crate) fn current(&self) -> Result<Option<Pair>, StoreError> {
        let current = self.current_path();
        if read(&current)?.is_none() && is_link(&self.updated_path()) {
            // A kubelet ended between removing the old link and renaming the new one.
            write(&current, || fs::rename(self.updated_path(), &current))?;
        }
        if let Some(pem) = read(&current)? {
            return pair(&current, &pem, &pem).map(Some);
        }
        let (certificate, key) = (self.path(".crt"), self.path(".key"));
        match (read(&certificate)?, read(&key)?) {
            (Some(chain), Some(key)) => pair(&certificate, &chain, &key).map(Some),
            _ => Ok(None),
        }
    }

    /// Writes a certificate and makes it the newest.
    ///
    /// # Errors
    /// The directory can't be written, or the link is a file.
    pub(crate) fn update(&self, pair: &Pair, now: Timestamp) -> Result<(), StoreError> {
        make_directory(&self.directory)?;
        let stamp = now.strftime("%Y-%m-%d-%H-%M-%S");
        let path = self.path(&format!("-{stamp}.pem"));
        let text = format!("{}{}", pair.chain_pem(), pair.key_pem());
        write_file(&path, text.as_bytes(), 0o600)?;
        let (current, updated) = (self.current_path(), self.updated_path());
        for link in [&current, &updated] {
            if fs::symlink_metadata(link).is_ok() && !is_link(link) {
                let path = link.clone();
                return Err(StoreError::NoLink { path });
            }
        }
        remove(&updated)?;
        write(&updated, || symlink(&path, &updated))?;
        write(&current, || {
            fs::rename(&updated, &current)?;
            File::open(&self.directory)?.sync_all()
        })
    }

    /// The key whose certificate has been requested, or a new one that is kept until it comes.
    ///
    /// # Errors
    /// The file can't be read or written.
    pub(super) fn pending_key(&self) -> Result<NodeKey, StoreError> {
        let path = self.pending_path();
        if let Some(text) = read(&path)? {
            match NodeKey::from_pem(&text) {
                Ok(key) => return Ok(key),
                Err(error) => {
                    let path = path.display();
                    tracing::warn!("Replacing {path}: {}", rubelet_base::ErrorChain(&error));
                }
            }
        }
        let key = NodeKey::generate().map_err(StoreError::Key)?;
        make_directory(&self.directory)?;
        write_file(&path, key.pem().as_bytes(), 0o600)?;
        Ok(key)
    }

    /// Forgets that key: its certificate is there, or was refused.
    pub(super) fn drop_pending_key(&self) -> Result<(), StoreError> {
        remove(&self.pending_path())
    }
}

fn pair(path: &Path, chain: &[u8], key: &[u8]) -> Result<Pair, StoreError> {
    Pair::from_pem(chain, key).map_err(|source| StoreError::Pair {
        path: path.to_owned(),
        source,
    })
}

/// Reads a pair from two files.
pub(super) fn read_pair(certificate: &Path, key: &Path) -> Result<Pair, StoreError> {
    let text = |path: &Path| {
        fs::read(path).map_err(|source| StoreError::Read {
            path: path.to_owned(),
            source,
        })
    };
    pair(certificate, &text(certificate)?, &text(key)?)
}

/// The content of a file, `None` if it is not there.
pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(StoreError::Read {
            path: path.to_owned(),
            source,
        }),
    }
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_symlink())
}

fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        result => write(path, || result),
    }
}

fn write(path: &Path, act: impl FnOnce() -> io::Result<()>) -> Result<(), StoreError> {
    act().map_err(|source| StoreError::Write {
        path: path.to_owned(),
        source,
    })
}

/// Makes the directory as the kubelet makes it: what is secret in it is closed file by file.
pub(super) fn make_directory(directory: &Path) -> Result<(), StoreError> {
    write(directory, || {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(directory)
    })
}

/// Writes a file so that it is there complete or not at all.
pub(super) fn write_file(path: &Path, content: &[u8], mode: u32) -> Result<(), StoreError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let temporary = path.with_file_name(name);
    // A rest of an earlier attempt may have other rights.
    remove(&temporary)?;
    write(path, || {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&temporary)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    })
}

#[cfg(test)]
mod tests;
