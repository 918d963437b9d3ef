//! One record: reading, writing and removing it.

use std::{
    fs, io,
    marker::PhantomData,
    path::{Path, PathBuf},
};

use crate::{
    Stored,
    envelope::{self, Damage},
    files::{directory, remove, sync_dir},
    kept::{self, flush_later, kept},
    replace::{ReplaceError, replace, replace_behind},
    seal::{self, Seal},
};

/// A record at a path. The directory must exist. Only one owner at a time: two that save the same
/// record would use the same temporary file.
#[derive(Debug)]
pub struct Record<T> {
    path: PathBuf,
    seal: Option<Seal>,
    kind: PhantomData<fn() -> T>,
}

/// The result of loading a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Loaded<T> {
    /// There is no record.
    Missing,
    /// A value, migrated if an older release wrote it.
    Valid(T),
    /// An invalid file. It was moved aside for inspection; there is no record any more.
    Quarantined {
        /// Its new path.
        moved_to: PathBuf,
        /// The damage.
        why: Damage,
    },
}

/// The result of a save.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saved {
    /// The value was written.
    Written,
    /// The file already had the value; this spares flash memory.
    Unchanged,
}

/// A record can't be loaded because of an I/O error.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file can't be read.
    #[error("cannot read the record {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The file is corrupt and can't be moved aside.
    #[error("the record {} is corrupt ({why}) and cannot be moved to {}", path.display(), to.display())]
    Quarantine {
        /// The file.
        path: PathBuf,
        /// The new path.
        to: PathBuf,
        /// The damage.
        why: Damage,
        /// The error of the move.
        source: io::Error,
    },
}

/// A record could not be saved. The old value is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// The value can't be encoded as JSON.
    #[error("cannot encode the record {}", path.display())]
    Encode {
        /// The file.
        path: PathBuf,
        /// The error.
        source: serde_json::Error,
    },
    /// The disk is full, read-only or broken.
    #[error("cannot {step} the record {}", path.display())]
    Disk {
        /// The file.
        path: PathBuf,
        /// The failed operation.
        step: &'static str,
        /// The error.
        source: io::Error,
    },
}

/// A record could not be removed.
#[derive(Debug, thiserror::Error)]
#[error("cannot remove the record {}", path.display())]
pub struct RemoveError {
    path: PathBuf,
    source: io::Error,
}

impl<T: Stored> Record<T> {
    /// The record at `path`. Touches no file.
    ///
    /// # Panics
    /// `path` has no file name, which is a bug of the caller.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        assert!(
            path.file_name().is_some(),
            "{} cannot be a record",
            path.display()
        );
        Self {
            path,
            seal: None,
            kind: PhantomData,
        }
    }

    /// The same record, encrypted. A file that is not encrypted, or with another key or bound to
    /// another name, counts as corrupt.
    #[must_use]
    pub fn sealed(self, seal: Seal) -> Self {
        Self {
            seal: Some(seal),
            ..self
        }
    }

    /// The path of the record.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the record. After a power failure this is the value before the last save, if that
    /// was not on the disk yet. Moves a corrupt record aside.
    ///
    /// # Errors
    /// An I/O error.
    pub fn load(&self) -> Result<Loaded<T>, LoadError> {
        let Some(bytes) = read(&self.path)? else {
            return Ok(Loaded::Missing);
        };
        let kept = kept(&self.path);
        match self.open(&bytes) {
            Ok(value) => {
                if kept.exists() {
                    kept::flush_interrupted(&self.path);
                }
                Ok(Loaded::Valid(value))
            }
            Err(why) => {
                let before = read(&kept)?.and_then(|bytes| self.open(&bytes).ok());
                match before {
                    Some(value) if fs::rename(&kept, &self.path).is_ok() => {
                        Ok(Loaded::Valid(value))
                    }
                    _ => self.quarantine(why),
                }
            }
        }
    }

    fn open(&self, bytes: &[u8]) -> Result<T, Damage> {
        match &self.seal {
            Some(seal) => seal::open(bytes, seal),
            None => envelope::open(bytes),
        }
    }

    fn quarantine(&self, why: Damage) -> Result<Loaded<T>, LoadError> {
        let to = (1u32..)
            .map(|number| self.sibling("", &format!(".corrupt-{number}")))
            .find(|path| fs::symlink_metadata(path).is_err())
            .expect("a directory can't hold so many files");
        match fs::rename(&self.path, &to).and_then(|()| sync_dir(directory(&self.path))) {
            Ok(()) => Ok(Loaded::Quarantined { moved_to: to, why }),
            Err(source) => Err(LoadError::Quarantine {
                path: self.path.clone(),
                to,
                why,
                source,
            }),
        }
    }

    /// Writes the record, unless its file already has the same value. When this returns, the value
    /// survives a crash of this process. It is flushed in the background, in the order of the
    /// calls, so that a power failure only loses the most recent saves.
    ///
    /// # Errors
    /// See [`SaveError`]; the old value stays.
    pub fn save(&self, value: &T) -> Result<Saved, SaveError> {
        self.save_with(value, replace_behind)
    }

    /// As [`Self::save`]; when this returns, the value survives a power failure. For values that a
    /// following action relies on, outside of latency-critical paths.
    ///
    /// # Errors
    /// See [`SaveError`]; the old value stays.
    pub fn save_synced(&self, value: &T) -> Result<Saved, SaveError> {
        self.save_with(value, replace)
    }

    fn save_with(
        &self,
        value: &T,
        replace: impl FnOnce(&Path, &Path, &[u8]) -> Result<(), ReplaceError>,
    ) -> Result<Saved, SaveError> {
        let encode = |source| SaveError::Encode {
            path: self.path.clone(),
            source,
        };
        let old = fs::read(&self.path).ok();
        let bytes = match &self.seal {
            None => envelope::seal(value).map(Some),
            Some(seal) => seal::seal(value, seal, old.as_deref()),
        };
        let Some(bytes) = bytes
            .map_err(encode)?
            .filter(|new| old.as_ref() != Some(new))
        else {
            return Ok(Saved::Unchanged);
        };
        replace(&self.path, &self.temporary(), &bytes).map_err(|error| SaveError::Disk {
            path: self.path.clone(),
            step: error.step,
            source: error.source,
        })?;
        Ok(Saved::Written)
    }

    /// Removes the record, if it exists, and the temporary file of an interrupted save. The
    /// directory is flushed in the background.
    ///
    /// # Errors
    /// An I/O error.
    pub fn remove(&self) -> Result<(), RemoveError> {
        // The record last: a backup without the record would restore it.
        let removed = remove(&self.temporary())
            .and_then(|()| kept::forget(&self.path))
            .and_then(|()| remove(&self.path));
        removed.map_err(|source| RemoveError {
            path: self.path.clone(),
            source,
        })?;
        flush_later(&self.path);
        Ok(())
    }

    fn temporary(&self) -> PathBuf {
        self.sibling(".", ".tmp")
    }

    fn sibling(&self, prefix: &str, suffix: &str) -> PathBuf {
        let mut name = std::ffi::OsString::from(prefix);
        name.push(self.path.file_name().unwrap_or_default());
        name.push(suffix);
        self.path.with_file_name(name)
    }
}

/// The content of a file; `None` if it does not exist.
fn read(path: &Path) -> Result<Option<Vec<u8>>, LoadError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(LoadError::Read {
            path: path.to_owned(),
            source,
        }),
    }
}
