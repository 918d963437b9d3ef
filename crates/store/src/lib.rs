//! Records on disk that survive a crash at any instant.
//!
//! A record is one file with a value, the version of its form and a checksum. It is written beside
//! its place, flushed and renamed, so that a reader finds the old or the new value, never a part.
//! A file that is damaged all the same is moved aside and reported; it never stops the agent,
//! which rebuilds what it held. See [`Record`]. What must not be read by who gets hold of the disk is
//! encrypted: [`Record::sealed`].

mod checksum;
mod envelope;
mod key_file;
mod record;
mod replace;
mod seal;

#[cfg(test)]
mod tests;

pub use envelope::Damage;
pub use key_file::KeyError;
pub use record::{LoadError, Loaded, Record, RemoveError, SaveError, Saved};
pub use replace::{ReplaceError, replace};
pub use seal::{Seal, SealKey};

/// One step of a migration: turns a value of one version into one of the next, or says why it
/// can't.
pub type Migration = fn(serde_json::Value) -> Result<serde_json::Value, String>;

/// A type that is kept in records.
pub trait Stored: serde::Serialize + serde::de::DeserializeOwned {
    /// Names the kind of record in its file, so that records can't be mixed up.
    const KIND: &'static str;

    /// Steps from each older version to the next: the first one takes version 1, and the length of
    /// the list tells the version of today. Steps are only ever added at the end.
    const MIGRATIONS: &'static [Migration];

    /// The version that is written: 1 without migrations.
    const VERSION: usize = Self::MIGRATIONS.len() + 1;
}
