//! The form of a record's file: one line with what it is, one line of JSON.
//!
//! ```text
//! rubelet-record KIND VERSION CHECKSUM
//! {"the":"value"}
//! ```
//!
//! The checksum is taken over kind, version and value, so that no part of the file can change
//! unnoticed.

use serde_json::Value;

use crate::{Stored, checksum::crc64};

pub(crate) const MAGIC: &str = "rubelet-record";

/// What is wrong with a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The file is cut, changed, or never was a record.
    #[error("it is not a whole record: {0}")]
    Form(&'static str),
    /// Content and checksum disagree.
    #[error("its checksum is {actual:016x}, not {expected:016x}")]
    Checksum {
        /// What the file says.
        expected: u64,
        /// What its content has.
        actual: u64,
    },
    /// It is a record of another kind.
    #[error("it is a record of `{found}`, not of `{expected}`")]
    Kind {
        /// What the file says.
        found: String,
        /// What was asked for.
        expected: &'static str,
    },
    /// A newer release wrote it.
    #[error("it has version {found}, this release knows versions up to {known}")]
    Newer {
        /// What the file says.
        found: usize,
        /// The newest version this release knows.
        known: usize,
    },
    /// An older version can't be brought up to date.
    #[error("version {from} can't be migrated: {why}")]
    Migration {
        /// The version at which it failed.
        from: usize,
        /// Why.
        why: String,
    },
    /// It is encrypted with another key, or encrypted where no key is used.
    #[error("it is encrypted with a key that this node does not have")]
    OtherKey,
    /// The key is right, but the record was changed, or made for another place.
    #[error("it was changed, or is the record of something else")]
    NotAuthentic,
    /// It is not encrypted where all records are.
    #[error("it is not encrypted")]
    NotEncrypted,
    /// The checksum holds, but the value is not of the type: a mistake of the release that wrote
    /// it.
    #[error("its value is not valid: {0}")]
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
    let text = std::str::from_utf8(bytes).map_err(|_| Damage::Form("it is not text"))?;
    let (header, json) = text
        .split_once('\n')
        .ok_or(Damage::Form("it has no second line"))?;
    let json = json
        .strip_suffix('\n')
        .ok_or(Damage::Form("its end is missing"))?;
    let mut words = header.split(' ');
    if words.next() != Some(MAGIC) {
        return Err(Damage::Form("it does not begin as records do"));
    }
    let kind = words.next().ok_or(Damage::Form("it has no kind"))?;
    let version = words.next().and_then(|word| word.parse().ok());
    let version = version.filter(|&version| version > 0);
    let version: usize = version.ok_or(Damage::Form("it has no version"))?;
    let expected = words
        .next()
        .and_then(|word| u64::from_str_radix(word, 16).ok());
    let expected = expected.ok_or(Damage::Form("it has no checksum"))?;
    let actual = checksum(kind, version, json);
    if actual != expected {
        return Err(Damage::Checksum { expected, actual });
    }
    // Only the one way of writing a header is a whole record: case and zeros matter, too.
    if header != format!("{MAGIC} {kind} {version} {expected:016x}") {
        return Err(Damage::Form("its first line was changed"));
    }
    decode(kind, version, json)
}

/// The value of a record whose bytes are whole.
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
