//! The records of all pods on the network: one file each, and a copy in memory.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use parking_lot::Mutex;
use rubelet_store::{Loaded, Record};

use crate::{NetworkError, NetworkFailure, NetworkRefusal, attachment::Attachment};

/// The records.
#[derive(Debug)]
pub(crate) struct Attachments {
    dir: PathBuf,
    known: Mutex<BTreeMap<String, Attachment>>,
    damaged: Vec<String>,
}

impl Attachments {
    /// Reads the records in a directory, which is created if it is missing.
    pub(crate) fn open(dir: PathBuf) -> Result<Self, NetworkError> {
        let failed = |error: io::Error| NetworkFailure::ReadRecords {
            dir: dir.clone(),
            error,
        };
        fs::create_dir_all(&dir).map_err(failed)?;
        let mut known = BTreeMap::new();
        let mut damaged = Vec::new();
        for entry in fs::read_dir(&dir).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|extension| extension == "tmp") {
                // The temporary file of an interrupted write; the record itself is intact.
                fs::remove_file(&path).map_err(failed)?;
                continue;
            }
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            match Record::<Attachment>::at(&path).load() {
                Ok(Loaded::Valid(attachment)) => {
                    known.insert(attachment.sandbox.clone(), attachment);
                }
                Ok(Loaded::Missing) => {}
                Ok(Loaded::Quarantined { moved_to, why }) => damaged.push(format!(
                    "the record {} of a pod's network is damaged ({why}) and was renamed to {}",
                    path.display(),
                    moved_to.display()
                )),
                Err(error) => return Err(NetworkFailure::LoadRecord(Box::new(error)).into()),
            }
        }
        Ok(Self {
            dir,
            known: Mutex::new(known),
            damaged,
        })
    }

    /// Messages about corrupt records.
    pub(crate) fn damaged(&self) -> &[String] {
        &self.damaged
    }

    pub(crate) fn get(&self, sandbox: &str) -> Option<Attachment> {
        self.known.lock().get(sandbox).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Attachment> {
        self.known.lock().values().cloned().collect()
    }

    /// Writes a record. When this returns, it survives a power loss.
    pub(crate) fn save(&self, attachment: &Attachment) -> Result<(), NetworkError> {
        Record::at(self.path(&attachment.sandbox)?)
            .save(attachment)
            .map_err(NetworkFailure::SaveRecord)?;
        self.known
            .lock()
            .insert(attachment.sandbox.clone(), attachment.clone());
        Ok(())
    }

    /// Removes a record, if there is one.
    pub(crate) fn remove(&self, sandbox: &str) -> Result<(), NetworkError> {
        Record::<Attachment>::at(self.path(sandbox)?)
            .remove()
            .map_err(NetworkFailure::RemoveRecord)?;
        self.known.lock().remove(sandbox);
        Ok(())
    }

    fn path(&self, sandbox: &str) -> Result<PathBuf, NetworkRefusal> {
        check_id(sandbox)?;
        Ok(self.dir.join(Path::new(&format!("{sandbox}.json"))))
    }
}

/// Checks that a sandbox ID is a valid `CNI_CONTAINERID`; it then is a safe file name as well.
pub(crate) fn check_id(sandbox: &str) -> Result<(), NetworkRefusal> {
    let first = sandbox.bytes().next();
    let fits = first.is_some_and(|byte| byte.is_ascii_alphanumeric())
        && sandbox.len() <= 200
        && sandbox
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte));
    if fits {
        return Ok(());
    }
    Err(NetworkRefusal::SandboxId(sandbox.to_owned()))
}
