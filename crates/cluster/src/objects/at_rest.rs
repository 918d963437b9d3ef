//! Secrets and tokens on disk: encrypted with a key that lies elsewhere, or not kept at all.
//!
//! Each record is bound to the node's name and to the name of its file, which is made from the kind
//! and the namespace and name of the object, or the UID of the pod: none can be put in the place of
//! another one, or be taken to another node.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use rubelet_base::ErrorChain;
use rubelet_store::{KeyError, Loaded, Record, Seal, SealKey, Stored};
use tracing::{info, warn};

use super::records::{ObjectRecord, TokensRecord};

/// Prefix of the file name of a secret.
pub(super) const SECRET: &str = "secret-";
/// Prefix of the file name of a pod's tokens.
pub(super) const TOKENS: &str = "tokens-";
/// Prefix of an encrypted record.
const SEALED: &[u8] = b"rubelet-sealed ";

/// `rubelet.secretsAtRest`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretsAtRest {
    /// `none`: they are in memory only.
    None,
    /// `encrypted`.
    Encrypted {
        /// A key that the service manager gives, which goes first if the file is there.
        credential: Option<PathBuf>,
        /// `rubelet.secretsKeyFile`; made if it is not there.
        key_file: PathBuf,
        /// The name of the node.
        node_name: Arc<str>,
    },
}

/// Treatment of secrets and tokens on disk, after the key was looked up.
#[derive(Debug, Clone)]
pub(super) enum Sealing {
    /// Nothing is written.
    NotKept,
    /// They are encrypted.
    Kept { key: Arc<SealKey>, node: Arc<str> },
}

impl Sealing {
    /// The record in a file that may hold a secret; `None` if none is kept.
    pub(super) fn record<T: Stored>(&self, path: PathBuf) -> Option<Record<T>> {
        let Self::Kept { key, node } = self else {
            return None;
        };
        let name = path.file_name()?.to_str()?;
        let seal = Seal {
            key: Arc::clone(key),
            bound_to: format!("{node}\n{name}"),
        };
        Some(Record::at(path).sealed(seal))
    }
}

/// Finds the key, encrypts what an earlier version left in plain text in `directory`, and removes what
/// may not be there. Blocks.
pub(super) fn prepare(directory: &Path, wanted: &SecretsAtRest) -> Sealing {
    let sealing = match wanted {
        SecretsAtRest::None => Sealing::NotKept,
        SecretsAtRest::Encrypted {
            credential,
            key_file,
            node_name,
        } => match find_key(credential.as_deref(), key_file) {
            Ok(key) => Sealing::Kept {
                key: Arc::new(key),
                node: Arc::clone(node_name),
            },
            Err(error) => {
                warn!(error = %ErrorChain(&error), "Secrets and tokens are not stored on disk, so pods that use them cannot start while the API server is unreachable; fix the key file, or set rubelet.secretsKeyFile or rubelet.secretsAtRest: none");
                Sealing::NotKept
            }
        },
    };
    let keeps_sealed = !matches!(wanted, SecretsAtRest::None);
    match tidy(directory, &sealing, keeps_sealed) {
        Ok(0) => {}
        Ok(count) => info!(
            count,
            "Encrypted or removed the secrets and tokens that were stored in plain text"
        ),
        Err(error) => {
            warn!(directory = %directory.display(), %error, "Cannot encrypt or remove secrets and tokens that are stored in plain text");
        }
    }
    sealing
}

fn find_key(credential: Option<&Path>, key_file: &Path) -> Result<SealKey, KeyError> {
    if let Some(credential) = credential {
        match SealKey::read(credential) {
            Err(KeyError::Missing(_)) => {}
            read => return read,
        }
    }
    let (key, is_new) = SealKey::read_or_create(key_file)?;
    if is_new {
        info!(file = %key_file.display(), "Created a key for secrets and tokens on disk");
    }
    Ok(key)
}

/// Leaves no secret in plain text in the directory, and without `keeps_sealed` no encrypted one
/// either. How many files were changed or removed.
fn tidy(directory: &Path, sealing: &Sealing, keeps_sealed: bool) -> io::Result<usize> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let mut changed = 0;
    for entry in entries {
        let path = entry?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        // Also of a record that was being written, or was damaged.
        let stem = name.strip_prefix('.').unwrap_or(name);
        if !stem.starts_with(SECRET) && !stem.starts_with(TOKENS) {
            continue;
        }
        if keeps_sealed && is_sealed(&path)? {
            continue;
        }
        changed += 1;
        let migrated = if name.starts_with(SECRET) {
            encrypt::<ObjectRecord>(&path, sealing)
        } else if name.starts_with(TOKENS) {
            encrypt::<TokensRecord>(&path, sealing)
        } else {
            false
        };
        if !migrated {
            remove(&path)?;
        }
    }
    if changed > 0 {
        // So that no plain text comes back after a power cut.
        File::open(directory)?.sync_all()?;
    }
    Ok(changed)
}

fn is_sealed(path: &Path) -> io::Result<bool> {
    let mut start = Vec::new();
    File::open(path)?
        .take(SEALED.len() as u64)
        .read_to_end(&mut start)?;
    Ok(start == SEALED)
}

/// Writes the record of an earlier version encrypted in place. `false` if it is not one, or is
/// not to be kept.
fn encrypt<T: Stored>(path: &Path, sealing: &Sealing) -> bool {
    if path.extension().is_none_or(|end| end != "json") {
        return false;
    }
    let Some(sealed) = sealing.record::<T>(path.to_owned()) else {
        return false;
    };
    match Record::<T>::at(path).load() {
        Ok(Loaded::Valid(value)) => sealed.save_synced(&value).is_ok(),
        Ok(Loaded::Quarantined { moved_to, .. }) => {
            // In plain text it is not kept, not even for a look. What can't be removed now is at
            // the next start.
            let _ = fs::remove_file(moved_to);
            false
        }
        Ok(Loaded::Missing) | Err(_) => false,
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
