//! The objects of tracked pods on disk, so that pods start again after a reboot without the API
//! server. The folder and its files can be read by root only.

use std::{
    collections::BTreeSet,
    fs::{self, DirBuilder, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::PathBuf,
};

use rubelet_base::{ErrorChain, PodUid};
use rubelet_store::{Loaded, Record, Stored};
use sha2::{Digest, Sha256};
use tokio::task::spawn_blocking;
use tracing::warn;

use super::{
    cell::ObjectKey,
    records::{ClassesRecord, ObjectRecord, ServicesRecord, TokensRecord},
};

/// Which file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FileKey {
    /// A config map or secret.
    Object(ObjectKey),
    /// The tokens of a pod.
    Tokens(PodUid),
    /// The services that variables are made of.
    Services,
    /// The runtime classes.
    Classes,
}

/// What is written.
pub(super) enum FileContent {
    Object(ObjectRecord),
    Tokens(TokensRecord),
    Services(ServicesRecord),
    Classes(ClassesRecord),
}

/// The folder.
#[derive(Debug, Clone)]
pub(super) struct Files {
    folder: PathBuf,
}

impl FileKey {
    /// Names of objects may be too long for a file, and UIDs may be anything.
    fn name(&self) -> String {
        let hashed = |kind: &str, parts: &[&str]| {
            let digest = Sha256::digest(parts.join("/"));
            let hex: String = digest[..16]
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            format!("{kind}-{hex}.json")
        };
        match self {
            Self::Object(key) => hashed(key.word(), &[&key.namespace, &key.name]),
            Self::Tokens(uid) => hashed("tokens", &[uid.as_str()]),
            Self::Services => "services.json".to_owned(),
            Self::Classes => "runtimeclasses.json".to_owned(),
        }
    }
}

impl Files {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Reads a file; nothing where there is none, or one that can't be used.
    pub(super) async fn load<T: Stored + Send + 'static>(&self, key: &FileKey) -> Option<T> {
        let path = self.folder.join(key.name());
        let read = spawn_blocking(move || match Record::at(&path).load() {
            Ok(Loaded::Valid(value)) => Some(value),
            Ok(Loaded::Missing) => None,
            Ok(Loaded::Quarantined { moved_to, why }) => {
                warn!(record = %path.display(), moved_to = %moved_to.display(), %why, "A damaged record was put aside; the API server has what it held");
                None
            }
            Err(error) => {
                warn!(record = %path.display(), error = %ErrorChain(&error), "A record can't be read");
                None
            }
        });
        read.await.ok().flatten()
    }

    /// Writes these files, and removes those without content.
    pub(super) async fn write(&self, files: Vec<(FileKey, Option<FileContent>)>) {
        let this = self.clone();
        let written = spawn_blocking(move || {
            if let Err(error) = this.make_folder() {
                warn!(folder = %this.folder.display(), %error, "Objects of pods can't be kept for a reboot");
                return;
            }
            for (key, content) in files {
                this.write_one(&key, content.as_ref());
            }
        });
        if let Err(error) = written.await
            && let Ok(panic) = error.try_into_panic()
        {
            std::panic::resume_unwind(panic);
        }
    }

    /// Removes all files but these.
    pub(super) async fn keep_only(&self, keys: &BTreeSet<FileKey>) {
        let names: BTreeSet<String> = keys.iter().map(FileKey::name).collect();
        let folder = self.folder.clone();
        let removed = spawn_blocking(move || {
            let Ok(entries) = fs::read_dir(&folder) else {
                return;
            };
            for entry in entries.flatten() {
                let name = entry.file_name();
                let kept = name.to_str().is_some_and(|name| names.contains(name));
                if !kept && let Err(error) = fs::remove_file(entry.path()) {
                    warn!(file = %entry.path().display(), %error, "A file of no use any more can't be removed");
                }
            }
        });
        // The agent stops, or nothing went wrong.
        let _ = removed.await;
    }

    fn make_folder(&self) -> io::Result<()> {
        let made = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder);
        made?;
        let mode = fs::metadata(&self.folder)?.permissions().mode() & 0o7777;
        if mode == 0o700 {
            return Ok(());
        }
        fs::set_permissions(&self.folder, Permissions::from_mode(0o700))
    }

    fn write_one(&self, key: &FileKey, content: Option<&FileContent>) {
        let path = self.folder.join(key.name());
        let result = match content {
            Some(FileContent::Object(record)) => save(path, record),
            Some(FileContent::Tokens(record)) => save(path, record),
            Some(FileContent::Services(record)) => save(path, record),
            Some(FileContent::Classes(record)) => save(path, record),
            // Most pods leave nothing, and a removal waits for the disk.
            None if matches!(path.try_exists(), Ok(false)) => Ok(()),
            None => Record::<ObjectRecord>::at(path)
                .remove()
                .map_err(|error| ErrorChain(&error).to_string()),
        };
        if let Err(error) = result {
            warn!(error, "Objects of pods can't be kept for a reboot");
        }
    }
}

fn save<T: Stored>(path: PathBuf, record: &T) -> Result<(), String> {
    let saved = Record::at(path).save(record);
    saved
        .map(drop)
        .map_err(|error| ErrorChain(&error).to_string())
}
