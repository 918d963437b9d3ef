//! Intents of operators for pods beside their manifests: passed to the pods' tasks, and kept on
//! disk, so that a restart of the agent loses nothing that was acknowledged.

#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use rubelet_base::{ErrorChain, PodUid};
use rubelet_pod_plan::OperatorIntents;
use rubelet_store::{Loaded, Migration, Record, RemoveError, SaveError, Stored};
use serde::{Deserialize, Serialize};
use tokio::{
    sync::{OwnedMutexGuard, watch},
    task::JoinError,
};
use tracing::warn;

use crate::record_index::RecordIndex;

/// The intents of all pods, one small file for each pod. Cheap to clone.
#[derive(Debug, Clone)]
pub struct IntentBoard {
    shared: Arc<IntentRecords>,
}

#[derive(Debug)]
struct IntentRecords {
    directory: PathBuf,
    index: RecordIndex,
    known: Mutex<HashMap<PodUid, PodIntents>>,
    version: watch::Sender<u64>,
    /// Held while files are read and written. Only its holder changes `known`, except for pods
    /// without a file that have no receivers yet.
    disk: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Debug)]
struct PodIntents {
    intents: watch::Sender<Arc<OperatorIntents>>,
    version: u64,
}

/// A request could not be stored; nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum IntentError {
    /// An I/O error.
    #[error("cannot store the request for pod {uid}")]
    Save {
        /// The pod.
        uid: PodUid,
        /// Why.
        source: SaveError,
    },
    /// An I/O error.
    #[error("cannot delete the requests for pod {uid}")]
    Remove {
        /// The pod.
        uid: PodUid,
        /// Why.
        source: RemoveError,
    },
    /// The agent is stopping.
    #[error("the agent is stopping")]
    Stops,
}

/// What happens to a change that can't be stored.
#[derive(Debug, Clone, Copy)]
enum WhenUnsaved {
    /// Nothing changes.
    Fail,
    /// It holds until the agent ends.
    Hold,
}

/// The file of one pod.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct IntentRecord(OperatorIntents);

impl Stored for IntentRecord {
    const KIND: &'static str = "intents";
    const MIGRATIONS: &'static [Migration] = &[];
}

impl IntentBoard {
    /// A board with files in this directory, which must exist.
    #[must_use]
    pub fn new(directory: PathBuf) -> Self {
        Self {
            shared: Arc::new(IntentRecords {
                index: RecordIndex::of(&directory),
                directory,
                known: Mutex::default(),
                version: watch::Sender::new(0),
                disk: Arc::default(),
            }),
        }
    }

    /// Follows the intents of a pod; reads them from disk at first use. Level-triggered. A
    /// corrupt record is moved aside and counts as empty.
    pub async fn watch(&self, uid: &PodUid) -> watch::Receiver<Arc<OperatorIntents>> {
        if let Some(known) = self.shared.known.lock().get(uid) {
            return known.intents.subscribe();
        }
        // The loop that admits new pods does not wait for the disk.
        if !self.shared.index.may_have(uid) {
            return self.shared.follow(uid, OperatorIntents::default());
        }
        let disk = self.lock().await;
        self.load(&disk, uid).await
    }

    /// Changes the intents of a pod. Once this returns `Ok`, they survive a crash of the agent, and
    /// shortly later a power failure. `change` may change nothing; its result is returned.
    ///
    /// # Errors
    /// See [`IntentError`]; the intents are then as they were.
    pub async fn update<R>(
        &self,
        uid: &PodUid,
        change: impl FnOnce(&mut OperatorIntents) -> R + Send,
    ) -> Result<R, IntentError> {
        let disk = self.lock().await;
        let old = self.load(&disk, uid).await.borrow().clone();
        let mut new = OperatorIntents::clone(&old);
        let answer = change(&mut new);
        if new != *old {
            self.keep(disk, uid, new, WhenUnsaved::Fail).await?;
        }
        Ok(answer)
    }

    /// Like [`Self::update`], for a change that frees space of a full disk: if it can't be stored, it
    /// holds for as long as the agent runs.
    pub async fn update_without_space(
        &self,
        uid: &PodUid,
        change: impl FnOnce(&mut OperatorIntents) + Send,
    ) {
        let disk = self.lock().await;
        let old = self.load(&disk, uid).await.borrow().clone();
        let mut new = OperatorIntents::clone(&old);
        change(&mut new);
        if new != *old {
            // The only other error is that the agent stops.
            let _ = self.keep(disk, uid, new, WhenUnsaved::Hold).await;
        }
    }

    /// Forgets a removed pod.
    pub async fn remove(&self, uid: &PodUid) {
        let disk = self.lock().await;
        if let Err(error) = self
            .keep(disk, uid, OperatorIntents::default(), WhenUnsaved::Fail)
            .await
        {
            warn!(%uid, error = %ErrorChain(&error), "Cannot delete the requests for a removed pod from disk");
        }
        self.shared.known.lock().remove(uid);
    }

    /// The intents of a pod, if they are loaded.
    #[must_use]
    pub fn current(&self, uid: &PodUid) -> Option<Arc<OperatorIntents>> {
        let known = self.shared.known.lock();
        known
            .get(uid)
            .map(|known| Arc::clone(&known.intents.borrow()))
    }

    /// Follows the version of the board, which grows with each change; level-triggered.
    #[must_use]
    pub fn versions(&self) -> watch::Receiver<u64> {
        self.shared.version.subscribe()
    }

    /// The version at which the intents of a pod last changed; 0 if they never did.
    #[must_use]
    pub fn version_of(&self, uid: &PodUid) -> u64 {
        self.shared
            .known
            .lock()
            .get(uid)
            .map_or(0, |known| known.version)
    }

    async fn lock(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.shared.disk).lock_owned().await
    }

    async fn load(
        &self,
        _disk: &OwnedMutexGuard<()>,
        uid: &PodUid,
    ) -> watch::Receiver<Arc<OperatorIntents>> {
        if let Some(known) = self.shared.known.lock().get(uid) {
            return known.intents.subscribe();
        }
        let intents = if self.shared.index.may_have(uid) {
            let path = path(&self.shared.directory, uid);
            let loaded = tokio::task::spawn_blocking(move || read(&path)).await;
            loaded.unwrap_or_default()
        } else {
            OperatorIntents::default()
        };
        self.shared.follow(uid, intents)
    }

    /// Writes intents, then notifies the tasks. Completes even if the caller is dropped, so that
    /// tasks only get intents that are on disk.
    async fn keep(
        &self,
        disk: OwnedMutexGuard<()>,
        uid: &PodUid,
        intents: OperatorIntents,
        when_unsaved: WhenUnsaved,
    ) -> Result<(), IntentError> {
        let (shared, uid) = (Arc::clone(&self.shared), uid.clone());
        let kept = tokio::spawn(async move {
            let written = {
                let (path, uid, intents) =
                    (path(&shared.directory, &uid), uid.clone(), intents.clone());
                tokio::task::spawn_blocking(move || write(&path, uid, intents)).await
            };
            match (finished(written), when_unsaved) {
                (Err(error @ IntentError::Save { .. }), WhenUnsaved::Hold) => {
                    warn!(%uid, error = %ErrorChain(&error), "A request for a pod is lost if the agent ends now");
                }
                (written, _) => written?,
            }
            if intents == OperatorIntents::default() {
                shared.index.remove(&uid);
            } else {
                shared.index.insert(&uid);
            }
            shared.tell(&uid, intents);
            drop(disk);
            Ok(())
        });
        finished(kept.await)
    }
}

impl IntentRecords {
    /// Follows the intents of a pod, starting with these if it is not followed yet.
    fn follow(
        &self,
        uid: &PodUid,
        intents: OperatorIntents,
    ) -> watch::Receiver<Arc<OperatorIntents>> {
        let mut known = self.known.lock();
        let of = known.entry(uid.clone()).or_insert_with(|| PodIntents {
            intents: watch::Sender::new(Arc::new(intents)),
            version: 0,
        });
        of.intents.subscribe()
    }

    fn tell(&self, uid: &PodUid, intents: OperatorIntents) {
        let mut known = self.known.lock();
        let Some(known) = known.get_mut(uid) else {
            return;
        };
        let version = *self.version.borrow() + 1;
        known.version = version;
        known.intents.send_replace(Arc::new(intents));
        self.version.send_replace(version);
    }
}

/// The result of a completed task; a panic is resumed in the caller.
fn finished<T>(ended: Result<Result<T, IntentError>, JoinError>) -> Result<T, IntentError> {
    match ended {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(IntentError::Stops),
        },
    }
}

fn read(path: &Path) -> OperatorIntents {
    match Record::at(path).load() {
        Ok(Loaded::Valid(IntentRecord(intents))) => intents,
        Ok(Loaded::Missing) => OperatorIntents::default(),
        Ok(Loaded::Quarantined { moved_to, why }) => {
            warn!(record = %path.display(), moved_to = %moved_to.display(), %why, "Moved a corrupt record aside; the pending requests for its pod are lost");
            OperatorIntents::default()
        }
        Err(error) => {
            warn!(record = %path.display(), error = %ErrorChain(&error), "Cannot read a record; the pending requests for its pod are lost");
            OperatorIntents::default()
        }
    }
}

/// Writes the record; removes it if nothing is requested.
fn write(path: &Path, uid: PodUid, intents: OperatorIntents) -> Result<(), IntentError> {
    let record = Record::at(path);
    if intents == OperatorIntents::default() {
        return record
            .remove()
            .map_err(|source| IntentError::Remove { uid, source });
    }
    record
        .save(&IntentRecord(intents))
        .map(drop)
        .map_err(|source| IntentError::Save { uid, source })
}

fn path(directory: &Path, uid: &PodUid) -> PathBuf {
    directory.join(format!("{uid}.json"))
}
