//! The objects of tracked pods on disk, so that pods start again after a reboot without the API
//! server. The directory and its files can be read by root only; secrets and tokens are encrypted.

use std::{
    collections::BTreeSet,
    fs::{self, DirBuilder, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::PathBuf,
    sync::Arc,
};

use aws_lc_rs::digest::{SHA256, digest};
use rubelet_api::container::ObjectKind;
use rubelet_base::{ErrorChain, PodUid};
use rubelet_store::{Loaded, Record, RemoveError, SaveError, Stored};
use tokio::{sync::OnceCell, task::spawn_blocking};
use tracing::warn;

use super::{
    at_rest::{self, Sealing, SecretsAtRest},
    object_key::ObjectKey,
    records::{ClassesRecord, ObjectRecord, ServicesRecord, TokensRecord},
};

/// Identifies a file.
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

/// The content of a file.
pub(super) enum FileContent {
    Object(ObjectRecord),
    Tokens(TokensRecord),
    Services(ServicesRecord),
    Classes(ClassesRecord),
}

/// The directory.
#[derive(Debug, Clone)]
pub(super) struct Files {
    directory: PathBuf,
    secrets: Arc<(SecretsAtRest, OnceCell<Sealing>)>,
}

impl FileKey {
    fn is_secret(&self) -> bool {
        match self {
            Self::Object(key) => key.kind == ObjectKind::Secret,
            Self::Tokens(_) => true,
            Self::Services | Self::Classes => false,
        }
    }

    /// Names of objects may be too long for a file, and UIDs may be anything.
    pub(super) fn name(&self) -> String {
        let hashed = |kind: &str, parts: &[&str]| {
            let digest = digest(&SHA256, parts.join("/").as_bytes());
            format!("{kind}-{}.json", hex::encode(&digest.as_ref()[..16]))
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
    pub(super) fn new(directory: PathBuf, secrets: SecretsAtRest) -> Self {
        Self {
            directory,
            secrets: Arc::new((secrets, OnceCell::new())),
        }
    }

    /// Finds the key and puts in order what an earlier version left, once. Everything else waits
    /// for it.
    pub(super) async fn prepare(&self) -> Sealing {
        let (wanted, ready) = &*self.secrets;
        let prepared = ready.get_or_init(|| async {
            let (directory, wanted) = (self.directory.clone(), wanted.clone());
            let prepared = spawn_blocking(move || at_rest::prepare(&directory, &wanted));
            // The agent stops: nothing is written any more.
            prepared.await.unwrap_or(Sealing::NotKept)
        });
        prepared.await.clone()
    }

    /// Reads a file; `None` if it is missing or cannot be used.
    pub(super) async fn load<T: Stored + Send + 'static>(&self, key: &FileKey) -> Option<T> {
        let path = self.directory.join(key.name());
        let sealing = self.prepare().await;
        let record = match key.is_secret() {
            true => sealing.record(path.clone())?,
            false => Record::at(&path),
        };
        let read = spawn_blocking(move || match record.load() {
            Ok(Loaded::Valid(value)) => Some(value),
            Ok(Loaded::Missing) => None,
            Ok(Loaded::Quarantined { moved_to, why }) => {
                warn!(record = %path.display(), moved_to = %moved_to.display(), %why, "Moved a damaged record aside; the API server has its content");
                None
            }
            Err(error) => {
                warn!(record = %path.display(), error = %ErrorChain(&error), "Cannot read a record");
                None
            }
        });
        read.await.ok().flatten()
    }

    /// Writes these files, and removes those without content.
    pub(super) async fn write(&self, files: Vec<(FileKey, Option<FileContent>)>) {
        let (this, sealing) = (self.clone(), self.prepare().await);
        let written = spawn_blocking(move || {
            if let Err(error) = this.make_directory() {
                warn!(directory = %this.directory.display(), %error, "Cannot store the objects that pods use; pods cannot start from them after a reboot");
                return;
            }
            for (key, content) in files {
                if let Err(error) = this.write_one(&key, content.as_ref(), &sealing) {
                    warn!(error = %ErrorChain(&error), "Cannot store the objects that pods use; pods cannot start from them after a reboot");
                }
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
        self.prepare().await;
        let directory = self.directory.clone();
        let removed = spawn_blocking(move || {
            let Ok(entries) = fs::read_dir(&directory) else {
                return;
            };
            for entry in entries.flatten() {
                let name = entry.file_name();
                let kept = name.to_str().is_some_and(|name| names.contains(name));
                if !kept && let Err(error) = fs::remove_file(entry.path()) {
                    warn!(file = %entry.path().display(), %error, "Cannot remove an obsolete file");
                }
            }
        });
        // The agent stops, or nothing went wrong.
        let _ = removed.await;
    }

    fn make_directory(&self) -> io::Result<()> {
        let made = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.directory);
        made?;
        let mode = fs::metadata(&self.directory)?.permissions().mode() & 0o7777;
        if mode == 0o700 {
            return Ok(());
        }
        fs::set_permissions(&self.directory, Permissions::from_mode(0o700))
    }

    fn write_one(
        &self,
        key: &FileKey,
        content: Option<&FileContent>,
        sealing: &Sealing,
    ) -> Result<(), FileError> {
        let path = self.directory.join(key.name());
        let is_kept = !key.is_secret() || matches!(sealing, Sealing::Kept { .. });
        match content.filter(|_| is_kept) {
            Some(FileContent::Object(record)) if key.is_secret() => {
                save_sealed(path, record, sealing)?;
            }
            Some(FileContent::Object(record)) => save(&Record::at(path), record)?,
            Some(FileContent::Tokens(record)) => save_sealed(path, record, sealing)?,
            Some(FileContent::Services(record)) => save(&Record::at(path), record)?,
            Some(FileContent::Classes(record)) => save(&Record::at(path), record)?,
            // Most pods leave nothing, and a removal waits for the disk.
            None if matches!(path.try_exists(), Ok(false)) => {}
            None => Record::<ObjectRecord>::at(path).remove()?,
        }
        Ok(())
    }
}

/// Why a file is not as it should be.
#[derive(Debug, thiserror::Error)]
enum FileError {
    /// It can't be written.
    #[error(transparent)]
    Save(#[from] SaveError),
    /// It can't be removed.
    #[error(transparent)]
    Remove(#[from] RemoveError),
}

fn save_sealed<T: Stored>(path: PathBuf, value: &T, sealing: &Sealing) -> Result<(), SaveError> {
    match sealing.record(path) {
        Some(record) => save(&record, value),
        None => Ok(()),
    }
}

fn save<T: Stored>(record: &Record<T>, value: &T) -> Result<(), SaveError> {
    record.save(value).map(drop)
}
