//! The format of a record's file: a header line, and one line of JSON.
//!
//! ```text
//! rubelet-record KIND VERSION CHECKSUM
//! {"the":"value"}
//! ```
//!
//! The checksum covers kind, version and value, so that any change of the file is detected.

use serde_json::Value;

use crate::{MigrationError, Stored, checksum::crc64};

pub(crate) const MAGIC: &str = "rubelet-record";

/// The damage of an invalid record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The file is truncated, modified, or was never a record.
    #[error("malformed record: {0}")]
    Form(&'static str),
    /// Content and checksum do not match.
    #[error("checksum mismatch: {actual:016x}, expected {expected:016x}")]
    Checksum {
        /// The checksum in the file.
        expected: u64,
        /// The checksum of its content.
        actual: u64,
    },
    /// It is a record of another kind.
    #[error("record of kind `{found}`, expected `{expected}`")]
    Kind {
        /// The kind in the file.
        found: String,
        /// The expected kind.
        expected: &'static str,
    },
    /// A newer release wrote it.
    #[error("record version {found} is newer than this release, which reads up to {known}")]
    Newer {
        /// The version in the file.
        found: usize,
        /// The newest version that this release knows.
        known: usize,
    },
    /// An older version can't be migrated.
    #[error("cannot migrate from version {from}: {why}")]
    Migration {
        /// The version whose migration failed.
        from: usize,
        /// The reason.
        why: MigrationError,
    },
    /// It is encrypted with another key, or encrypted although no key is used.
    #[error("encrypted with a key that this node does not have")]
    OtherKey,
    /// The key is right, but the record was modified, or belongs to another file.
    #[error("authentication failed: the record was changed, or belongs to another file")]
    NotAuthentic,
    /// It is not encrypted although all records must be.
    #[error("not encrypted")]
    NotEncrypted,
    /// The checksum matches, but the value does not have the type: a bug in the release that wrote
    /// it.
    #[error("invalid value: {0}")]
    Value(String),
}

/// The file's bytes for a value.
pub(crate) fn seal<T: Stored>(value: &T) -> Result<Vec<u8>, serde_json::Error> {
    let json = serde_json::to_string(value)?;
    let (kind, version) = (T::KIND, T::VERSION);
    let sum = checksum(kind, version, &json);
    Ok(format!("{MAGIC} {kind} {version} {sum:016x}\n{json}\n").into_bytes())
}

/// The value in a file's bytes.
pub(crate) fn open<T: Stored>(bytes: &[u8]) -> Result<T, Damage> {
    let text = std::str::from_utf8(bytes).map_err(|_| Damage::Form("not UTF-8 text"))?;
    let (header, json) = text
        .split_once('\n')
        .ok_or(Damage::Form("no second line"))?;
    let json = json
        .strip_suffix('\n')
        .ok_or(Damage::Form("the end is missing"))?;
    let mut words = header.split(' ');
    if words.next() != Some(MAGIC) {
        return Err(Damage::Form("not the header of a record"));
    }
    let kind = words.next().ok_or(Damage::Form("no kind"))?;
    let version = words.next().and_then(|word| word.parse().ok());
    let version = version.filter(|&version| version > 0);
    let version: usize = version.ok_or(Damage::Form("no version"))?;
    let expected = words
        .next()
        .and_then(|word| u64::from_str_radix(word, 16).ok());
    let expected = expected.ok_or(Damage::Form("no checksum"))?;
    let actual = checksum(kind, version, json);
    if actual != expected {
        return Err(Damage::Checksum { expected, actual });
    }
    // Only the canonical header is valid: case and leading zeros matter, too.
    if header != format!("{MAGIC} {kind} {version} {expected:016x}") {
        return Err(Damage::Form("first line was changed"));
    }
    decode(kind, version, json)
}

/// The value of a record with a valid checksum.
pub(crate) fn decode<T: Stored>(kind: &str, version: usize, json: &str) -> Result<T, Damage> {
    if kind != T::KIND {
        return Err(Damage::Kind {
            found: kind.to_owned(),
            expected: T::KIND,
        });
    }
    if version > T::VERSION {
        return Err(Damage::Newer {
            found: version,
            known: T::VERSION,
        });
    }
    let value = |error: serde_json::Error| Damage::Value(error.to_string());
    if version == T::VERSION {
        return serde_json::from_str(json).map_err(value);
    }
    let old: Value = serde_json::from_str(json).map_err(value)?;
    serde_json::from_value(migrate::<T>(version, old)?).map_err(value)
}

fn migrate<T: Stored>(version: usize, old: Value) -> Result<Value, Damage> {
    (version..)
        .zip(&T::MIGRATIONS[version - 1..])
        .try_fold(old, |value, (from, step)| {
            step(value).map_err(|why| Damage::Migration { from, why })
        })
}

fn checksum(kind: &str, version: usize, json: &str) -> u64 {
    crc64(format!("{kind} {version}\n{json}").as_bytes())
}
