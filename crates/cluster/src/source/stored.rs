//! Pods of the API server as they were known last, on disk: after a reboot without API server they
//! start again.

use std::{
    collections::BTreeMap,
    fs::DirBuilder,
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use rubelet_base::{ErrorChain, PodUid};
use rubelet_store::{Loaded, Migration, Record, Stored};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::sync::Notify;
use tracing::warn;

/// A pod as the API server had it.
#[derive(Debug, Serialize, Deserialize)]
struct StoredPod {
    json: Box<str>,
}

impl Stored for StoredPod {
    const KIND: &'static str = "api-pod";
    const MIGRATIONS: &'static [Migration] = &[];
}

/// Keeps pods in files of a directory that root alone can read. Cheap to clone; never blocks.
#[derive(Debug, Clone)]
pub(super) struct StoredPods {
    inner: Arc<PendingWrites>,
}

#[derive(Debug)]
struct PendingWrites {
    directory: PathBuf,
    /// Content to write; `None` removes the file.
    pending: Mutex<BTreeMap<PodUid, Option<Box<RawValue>>>>,
    wake: Notify,
}

impl StoredPods {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self {
            inner: Arc::new(PendingWrites {
                directory,
                pending: Mutex::default(),
                wake: Notify::new(),
            }),
        }
    }

    pub(super) fn put(&self, uid: PodUid, json: Option<Box<RawValue>>) {
        self.inner.pending.lock().insert(uid, json);
        self.inner.wake.notify_one();
    }

    /// Writes what to keep, until it is dropped.
    pub(super) async fn run(self) {
        loop {
            self.inner.wake.notified().await;
            let pending = std::mem::take(&mut *self.inner.pending.lock());
            let inner = Arc::clone(&self.inner);
            // A panic of the writer is one of this task.
            let written = tokio::task::spawn_blocking(move || {
                for (uid, json) in pending {
                    write(&inner.directory, &uid, json.as_deref());
                }
            });
            if let Err(error) = written.await
                && let Ok(panic) = error.try_into_panic()
            {
                std::panic::resume_unwind(panic);
            }
        }
    }

    /// The pods that are kept.
    pub(super) async fn uids(&self) -> Vec<PodUid> {
        let directory = self.inner.directory.clone();
        let listed = tokio::task::spawn_blocking(move || {
            let names = files(&directory).into_iter();
            let stems = names.filter_map(|path| Some(path.file_stem()?.to_str()?.into()));
            stems.collect()
        });
        listed.await.unwrap_or_default()
    }

    /// All pods that are kept. What can't be read is put aside.
    pub(super) async fn load(&self) -> Vec<Box<RawValue>> {
        let directory = self.inner.directory.clone();
        let loaded = tokio::task::spawn_blocking(move || load(&directory)).await;
        loaded.unwrap_or_default()
    }
}

fn record(directory: &Path, uid: &PodUid) -> Record<StoredPod> {
    Record::at(directory.join(format!("{uid}.json")))
}

fn write(directory: &Path, uid: &PodUid, json: Option<&RawValue>) {
    let record = record(directory, uid);
    let result = match json {
        Some(json) => make_directory(directory)
            .map_err(|error| error.to_string())
            .and_then(|()| {
                let pod = StoredPod {
                    json: json.get().into(),
                };
                let saved = record.save(&pod).map(drop);
                saved.map_err(|error| ErrorChain(&error).to_string())
            }),
        None => record
            .remove()
            .map_err(|error| ErrorChain(&error).to_string()),
    };
    if let Err(error) = result {
        warn!(%uid, error, "Cannot store a pod; it cannot start while the API server is unreachable");
    }
}

fn make_directory(directory: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
}

fn load(directory: &Path) -> Vec<Box<RawValue>> {
    let files = files(directory).into_iter();
    files.filter_map(|path| load_one(&path)).collect()
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            warn!(directory = %directory.display(), %error, "Cannot list stored pods");
            return Vec::new();
        }
    };
    let files = entries.flatten().map(|entry| entry.path());
    files
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .collect()
}

fn load_one(path: &Path) -> Option<Box<RawValue>> {
    match Record::<StoredPod>::at(path).load() {
        Ok(Loaded::Valid(pod)) => RawValue::from_string(pod.json.into()).ok(),
        Ok(Loaded::Missing) => None,
        Ok(Loaded::Quarantined { moved_to, why }) => {
            warn!(record = %path.display(), moved_to = %moved_to.display(), %why, "Moved the damaged record of a pod aside");
            None
        }
        Err(error) => {
            warn!(record = %path.display(), error = %ErrorChain(&error), "Cannot read a stored pod");
            None
        }
    }
}
