//! Records that survive a restart of the agent: the status and history of each pod, one small file
//! per pod.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use rubelet_api::status::PodStatus;
use rubelet_base::{ErrorChain, PodName, PodUid};
use rubelet_node_state::record_index::RecordIndex;
use rubelet_pleg::RuntimeIds;
use rubelet_pod_plan::History;
use rubelet_store::{Loaded, Migration, Record, Stored};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tracing::warn;

/// The record of one pod.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PodRecord {
    /// Namespace.
    pub namespace: Box<str>,
    /// Name.
    pub name: Box<str>,
    /// The status published last.
    pub status: PodStatus,
    /// Failed attempts, restarts and back-offs.
    pub history: History,
    /// The definition that status and history belong to; empty in records of versions that did not
    /// keep it.
    #[serde(default)]
    pub definition: Box<str>,
    /// The `kubernetes.io/config.hash` of the manifest that the pod ran by last; empty for pods of
    /// the API server, and in records of versions that did not keep it.
    #[serde(default)]
    pub content: Box<str>,
    /// How often the specification was edited, from 1; 0 in records of versions that did not count.
    #[serde(default)]
    pub generation: i64,
    /// True if the pod was being removed.
    #[serde(default)]
    pub removing: bool,
    /// Identifiers of its sandboxes and containers; empty in records of versions that did not keep
    /// them.
    #[serde(default)]
    pub held: RuntimeIds,
}

impl PodRecord {
    /// The record of a pod whose published status alone is known.
    #[must_use]
    pub fn of_status(name: &PodName, status: PodStatus) -> Self {
        Self {
            namespace: (&*name.namespace).into(),
            name: (&*name.name).into(),
            generation: status.observed_generation,
            status,
            history: History::default(),
            definition: "".into(),
            content: "".into(),
            removing: false,
            held: RuntimeIds::default(),
        }
    }
}

impl Stored for PodRecord {
    const KIND: &'static str = "pod";
    const MIGRATIONS: &'static [Migration] = &[];
}

/// Writes the newest record of each pod in the background. Cheap to clone; saving never blocks.
#[derive(Debug, Clone)]
pub struct RecordWriter {
    shared: Arc<SharedRecords>,
}

#[derive(Debug)]
struct SharedRecords {
    directory: PathBuf,
    index: RecordIndex,
    /// Records to write; `None` removes the file.
    pending: Mutex<HashMap<PodUid, Option<PodRecord>>>,
    wake: Notify,
    /// Held while files are written.
    writing: tokio::sync::Mutex<()>,
}

impl RecordWriter {
    /// A writer into a directory, whose file names are read now.
    #[must_use]
    pub fn new(directory: PathBuf) -> Self {
        let (pending, wake) = (Mutex::default(), Notify::new());
        Self {
            shared: Arc::new(SharedRecords {
                index: RecordIndex::of(&directory),
                directory,
                pending,
                wake,
                writing: tokio::sync::Mutex::default(),
            }),
        }
    }

    /// Saves the record of a pod.
    pub fn save(&self, uid: &PodUid, record: PodRecord) {
        self.put(uid, Some(record));
    }

    /// Removes the record of a pod.
    pub fn remove(&self, uid: &PodUid) {
        self.put(uid, None);
    }

    fn put(&self, uid: &PodUid, record: Option<PodRecord>) {
        match &record {
            Some(_) => self.shared.index.insert(uid),
            None => self.shared.index.remove(uid),
        }
        self.shared.pending.lock().insert(uid.clone(), record);
        self.shared.wake.notify_one();
    }

    /// Writes pending records, until it is dropped.
    pub async fn run(self) {
        loop {
            self.shared.wake.notified().await;
            self.flush().await;
        }
    }

    /// Writes all pending records.
    pub async fn flush(&self) {
        let _writing = self.shared.writing.lock().await;
        // After the lock: records that another flush took before are on disk when this one returns.
        let pending = std::mem::take(&mut *self.shared.pending.lock());
        if pending.is_empty() {
            return;
        }
        let directory = self.shared.directory.clone();
        let written = tokio::task::spawn_blocking(move || {
            for (uid, record) in pending {
                write(&directory, &uid, record.as_ref());
            }
        });
        if let Err(error) = written.await
            && let Ok(panic) = error.try_into_panic()
        {
            std::panic::resume_unwind(panic);
        }
    }

    /// Reads the record of a pod; a damaged one is moved away and counts as missing. For a pod
    /// without a record the disk is not accessed.
    pub async fn load(&self, uid: &PodUid) -> Option<PodRecord> {
        if !self.shared.index.may_have(uid) {
            return None;
        }
        // The file may be older than what was saved last.
        self.flush().await;
        let path = path(&self.shared.directory, uid);
        tokio::task::spawn_blocking(move || match Record::at(&path).load() {
            Ok(Loaded::Valid(record)) => Some(record),
            Ok(Loaded::Missing) => None,
            Ok(Loaded::Quarantined { moved_to, why }) => {
                warn!(record = %path.display(), moved_to = %moved_to.display(), %why, "Moved a damaged record away, it is rebuilt from the runtime");
                None
            }
            Err(error) => {
                warn!(record = %path.display(), error = %ErrorChain(&error), "Failed to read record");
                None
            }
        })
        .await
        .ok()
        .flatten()
    }
}

fn write(directory: &Path, uid: &PodUid, record: Option<&PodRecord>) {
    let path = path(directory, uid);
    let file = Record::<PodRecord>::at(&path);
    let result = match record {
        Some(record) => file
            .save(record)
            .map(drop)
            .map_err(|error| ErrorChain(&error).to_string()),
        None => file
            .remove()
            .map_err(|error| ErrorChain(&error).to_string()),
    };
    if let Err(error) = result {
        warn!(record = %path.display(), error, "Failed to write record");
    }
}

fn path(directory: &Path, uid: &PodUid) -> PathBuf {
    directory.join(format!("{uid}.json"))
}
