//! Records on disk that survive a crash at any instant.
//!
//! A [`Record`] is one file with a value, the version of its format and a checksum. It is written
//! to a temporary file that takes the place of the old one, so that a reader finds the old or the
//! new value, never a part, and flushed to the disk after that ([`Record::save`]) or before
//! ([`Record::save_synced`]). Until the flush the old value is kept as a backup for a power
//! failure. A corrupt file is moved aside and reported; it never stops the agent, which rebuilds
//! its content. Records with secrets are encrypted: [`Record::sealed`].
//!
//! ```
//! use rubelet_store::{Loaded, Migration, Record, Stored};
//!
//! #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
//! struct Restarts(u32);
//!
//! impl Stored for Restarts {
//!     const KIND: &'static str = "restarts";
//!     const MIGRATIONS: &'static [Migration] = &[];
//! }
//!
//! let directory = tempfile::tempdir().expect("a directory");
//! let record = Record::<Restarts>::at(directory.path().join("restarts.json"));
//! record.save(&Restarts(3)).expect("space on the disk");
//! assert!(matches!(record.load(), Ok(Loaded::Valid(Restarts(3)))));
//! ```

mod checksum;
mod envelope;
mod files;
mod kept;
mod key_file;
mod record;
mod replace;
mod seal;
mod write_behind;

#[cfg(test)]
mod tests;

pub use envelope::Damage;
pub use kept::wait_for_flush;
pub use key_file::KeyError;
pub use record::{LoadError, Loaded, Record, RemoveError, SaveError, Saved};
pub use replace::{ReplaceError, replace, replace_behind};
pub use seal::{Seal, SealKey};

/// One step of a migration: converts a value of one version into one of the next.
pub type Migration = fn(serde_json::Value) -> Result<serde_json::Value, MigrationError>;

/// Why a value of an older version cannot be converted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MigrationError(pub String);

impl From<&str> for MigrationError {
    fn from(reason: &str) -> Self {
        Self(reason.to_owned())
    }
}

/// A type that is stored in records.
pub trait Stored: serde::Serialize + serde::de::DeserializeOwned {
    /// Names the kind of record in its file, so that records can't be mixed up.
    const KIND: &'static str;

    /// Steps from each older version to the next: the first one takes version 1, and the length of
    /// the list gives the current version. Steps are only ever added at the end.
    const MIGRATIONS: &'static [Migration];

    /// The version that is written: 1 without migrations.
    const VERSION: usize = Self::MIGRATIONS.len() + 1;
}
