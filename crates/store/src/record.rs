//! One record: where it is, and how it is read, written and removed.

use std::{
    fs, io,
    marker::PhantomData,
    path::{Path, PathBuf},
};

use crate::{
    Stored,
    envelope::{self, Damage},
    replace::{directory, replace, sync_dir},
    seal::{self, Seal},
};

/// A record at a place. The folder must exist. One owner at a time: two that save the same record
/// would use the same temporary file.
#[derive(Debug)]
pub struct Record<T> {
    path: PathBuf,
    seal: Option<Seal>,
    kind: PhantomData<fn() -> T>,
}

/// What was found at a record's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Loaded<T> {
    /// Nothing.
    Missing,
    /// A value, brought up to date if an older release wrote it.
    Valid(T),
    /// A file that can't be used. It was moved aside for a look; there is no record any more.
    Quarantined {
        /// Where it is now.
        moved_to: PathBuf,
        /// What is wrong with it.
        why: Damage,
    },
}

/// Whether a save touched the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saved {
    /// The value was written and is safe.
    Written,
    /// The file already had it; flash memory is spared.
    Unchanged,
}

/// Why a record can't be loaded: the disk fails, not the record.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file can't be read.
    #[error("cannot read the record {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is damaged and can't be moved aside.
    #[error("the record {} is damaged ({why}) and cannot be moved to {}", path.display(), to.display())]
    Quarantine {
        /// The file.
        path: PathBuf,
        /// Where it was to go.
        to: PathBuf,
        /// What is wrong with it.
        why: Damage,
        /// Why it can't be moved.
        source: io::Error,
    },
}

/// Why a record could not be saved. The old value is still in its place.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// The value can't be written as JSON.
    #[error("cannot encode the record {}", path.display())]
    Encode {
        /// The file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// The disk is full, read-only or broken.
    #[error("cannot {step} the record {}", path.display())]
    Disk {
        /// The file.
        path: PathBuf,
        /// What was being done.
        step: &'static str,
        /// Why.
        source: io::Error,
    },
}

/// Why a record could not be removed.
#[derive(Debug, thiserror::Error)]
#[error("cannot remove the record {}", path.display())]
pub struct RemoveError {
    path: PathBuf,
    source: io::Error,
}

impl<T: Stored> Record<T> {
    /// The record at `path`. Touches nothing.
    ///
    /// # Panics
    /// `path` has no file name, which is a mistake of the caller, not of the user.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        assert!(
            path.file_name().is_some(),
            "{} can't be a record",
            path.display()
        );
        Self {
            path,
            seal: None,
            kind: PhantomData,
        }
    }

    /// The same record, encrypted. One that is not, or is encrypted with another key or for
    /// another place, counts as damaged.
    #[must_use]
    pub fn sealed(self, seal: Seal) -> Self {
        Self {
            seal: Some(seal),
            ..self
        }
    }

    /// Where the record is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the record; moves a damaged one aside.
    ///
    /// # Errors
    /// The disk fails.
    pub fn load(&self) -> Result<Loaded<T>, LoadError> {
        let bytes = match fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Loaded::Missing),
            Err(source) => {
                return Err(LoadError::Read {
                    path: self.path.clone(),
                    source,
                });
            }
        };
        let opened = match &self.seal {
            Some(seal) => seal::open(&bytes, seal),
            None => envelope::open(&bytes),
        };
        match opened {
            Ok(value) => Ok(Loaded::Valid(value)),
            Err(why) => self.quarantine(why),
        }
    }

    fn quarantine(&self, why: Damage) -> Result<Loaded<T>, LoadError> {
        let to = (1u32..)
            .map(|number| self.sibling("", &format!(".corrupt-{number}")))
            .find(|path| fs::symlink_metadata(path).is_err())
            .expect("a folder can't hold so many files");
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

    /// Writes the record, unless its file already has the very value. When this returns, the value
    /// survives a power cut.
    ///
    /// # Errors
    /// See [`SaveError`]; the old value stays.
    pub fn save(&self, value: &T) -> Result<Saved, SaveError> {
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

    /// Removes the record, if there is one, and what a crash may have left of a save.
    ///
    /// # Errors
    /// The disk fails.
    pub fn remove(&self) -> Result<(), RemoveError> {
        for path in [self.temporary(), self.path.clone()] {
            match fs::remove_file(&path) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(RemoveError { path, source }),
            }
        }
        match sync_dir(directory(&self.path)) {
            Ok(()) => Ok(()),
            // Without the folder there is no record in it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(source) => Err(RemoveError {
                path: self.path.clone(),
                source,
            }),
        }
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
