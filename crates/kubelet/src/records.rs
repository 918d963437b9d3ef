//! Records that survive a restart of the agent: status and history of each pod, in one small file
//! each.

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
    /// What was tried.
    pub history: History,
    /// The definition that all this is about; empty in records of versions that did not keep it.
    #[serde(default)]
    pub definition: Box<str>,
    /// The `kubernetes.io/config.hash` of the manifest that the pod ran by last; empty for pods of the
    /// API server, and in records of versions that did not keep it.
    #[serde(default)]
    pub content: Box<str>,
    /// How often the specification was edited, from 1; 0 in records of versions that did not count.
    #[serde(default)]
    pub generation: i64,
    /// True if the pod was being removed.
    #[serde(default)]
    pub removing: bool,
    /// What the runtime held of it; empty in records of versions that did not keep it.
    #[serde(default)]
    pub held: RuntimeIds,
}

impl PodRecord {
    /// What can be shown of a pod of which only the published status is known.
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

/// Takes records and writes the newest of each pod. Cheap to clone; never blocks.
#[derive(Debug, Clone)]
pub struct RecordWriter {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    directory: PathBuf,
    index: RecordIndex,
    /// What to write; `None` means: remove the file.
    pending: Mutex<HashMap<PodUid, Option<PodRecord>>>,
    wake: Notify,
    /// Held while files are written.
    writing: tokio::sync::Mutex<()>,
}

impl RecordWriter {
    /// A writer into a directory, whose names it reads now.
    #[must_use]
    pub fn new(directory: PathBuf) -> Self {
        let (pending, wake) = (Mutex::default(), Notify::new());
        Self {
            shared: Arc::new(Shared {
                index: RecordIndex::of(&directory),
                directory,
                pending,
                wake,
                writing: tokio::sync::Mutex::default(),
            }),
        }
    }

    /// Keeps this state of a pod.
    pub fn save(&self, uid: &PodUid, record: PodRecord) {
        self.put(uid, Some(record));
    }

    /// Forgets a pod.
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

    /// Writes what is kept, until it is dropped.
    pub async fn run(self) {
        loop {
            self.shared.wake.notified().await;
            self.flush().await;
        }
    }

    /// Writes everything that waits.
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

    /// Reads the record of a pod; one that is damaged is put aside and counts as missing. A pod that
    /// never had one is answered without the disk.
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
                warn!(record = %path.display(), moved_to = %moved_to.display(), %why, "A damaged record was put aside; it is rebuilt from the runtime");
                None
            }
            Err(error) => {
                warn!(record = %path.display(), error = %ErrorChain(&error), "A record can't be read");
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
        warn!(record = %path.display(), error, "A record can't be written");
    }
}

fn path(directory: &Path, uid: &PodUid) -> PathBuf {
    directory.join(format!("{uid}.json"))
}
