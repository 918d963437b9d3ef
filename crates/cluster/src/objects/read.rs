//! Reading objects: from the cache, from the API server, and with that away from what was known
//! last.

use std::{sync::Arc, time::Duration};

use rubelet_base::ErrorChain;
use rubelet_kube::ApiError;
use tokio::time::{Instant, timeout};
use tracing::{debug, warn};

use super::{
    ChangeDetection,
    cell::{Cell, Object, ObjectKey},
    files::FileKey,
    records::ObjectRecord,
    shared::Shared,
    wire,
};

/// So long the first answer of a watch is waited for; upstream's.
pub(super) const FIRST_ANSWER: Duration = Duration::from_secs(1);
/// So long an answer is waited for where something old could be used instead.
pub(super) const BEFORE_OLD: Duration = Duration::from_secs(5);
/// `Cache`: so long an object counts as fresh, where the node object says nothing else.
const DEFAULT_TTL: Duration = Duration::from_secs(60);

/// Why it is not known what an object holds, in upstream's words.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    /// The pod that wants it is not tracked.
    #[error("object {:?}/{:?} not registered", .0.namespace, .0.name)]
    NotRegistered(ObjectKey),
    /// The watch has no answer.
    #[error("failed to sync {0} cache: timed out waiting for the condition")]
    NotRead(&'static str),
    /// The API server refuses.
    #[error("{0}")]
    Refused(String),
}

impl Shared {
    /// The object as it is now; `None` if there is none of that name.
    pub(super) async fn read(
        self: &Arc<Self>,
        key: &ObjectKey,
    ) -> Result<Option<Object>, ReadError> {
        let cell = self
            .cell(key)
            .ok_or_else(|| ReadError::NotRegistered(key.clone()))?;
        cell.state().used_at = Instant::now();
        if self.detection != ChangeDetection::Watch {
            return self.fetch(&cell).await;
        }
        if !cell.follow.runs() {
            self.follow(&cell);
            self.wake.notify_one();
        }
        if cell.follow.is_read_within(FIRST_ANSWER).await {
            return Ok(cell.value());
        }
        // Told when there is an answer.
        cell.state().in_vain = true;
        self.load(&cell).await;
        if !cell.follow.view().read {
            return Err(ReadError::NotRead(key.word()));
        }
        match self.get(&cell).await {
            Ok(()) => Ok(cell.value()),
            Err(error) if error.is_transient() => Ok(self.old(&cell, &error)),
            Err(error) => {
                debug!(object = %key.path(), error = %ErrorChain(&error), "An object can't be read");
                Err(ReadError::NotRead(key.word()))
            }
        }
    }

    /// Without a watch: what was read lately, else what the API server says.
    async fn fetch(&self, cell: &Cell) -> Result<Option<Object>, ReadError> {
        let fetched_at = cell.state().fetched_at;
        if self.detection == ChangeDetection::Cache
            && fetched_at.is_some_and(|at| self.is_fresh(at))
        {
            return Ok(cell.value());
        }
        match self.get(cell).await {
            Ok(()) => {
                cell.state().fetched_at = Some(Instant::now());
                Ok(cell.value())
            }
            Err(error) if error.is_transient() => {
                self.load(cell).await;
                if cell.follow.view().read {
                    return Ok(self.old(cell, &error));
                }
                Err(ReadError::Refused(ErrorChain(&error).to_string()))
            }
            Err(_) if self.detection == ChangeDetection::Cache && fetched_at.is_some() => {
                Ok(cell.value())
            }
            Err(error) => Err(ReadError::Refused(ErrorChain(&error).to_string())),
        }
    }

    fn is_fresh(&self, at: Instant) -> bool {
        at.elapsed() < (self.ttl)().unwrap_or(DEFAULT_TTL)
    }

    /// Asks the API server for an object, once.
    async fn get(&self, cell: &Cell) -> Result<(), ApiError> {
        let path = cell.key.path();
        let answer = match timeout(BEFORE_OLD, self.api.get(&path)).await {
            Ok(Ok(found)) => Some(wire::object(cell.key.kind, found)),
            Ok(Err(error)) if error.is_not_found() => None,
            Ok(Err(error)) => return Err(error),
            Err(_) => return Err(ApiError::TimedOut),
        };
        let name = (cell.key.namespace.clone(), cell.key.name.clone());
        cell.follow.note(name, answer);
        cell.state().unconfirmed = false;
        self.is_dirty(FileKey::Object(cell.key.clone()));
        Ok(())
    }

    /// Whether the API server can't be asked for this.
    pub(super) async fn is_away(&self, path: &str) -> bool {
        match timeout(BEFORE_OLD, self.api.get(path)).await {
            Ok(answer) => answer.is_err_and(|error| error.is_transient()),
            Err(_) => true,
        }
    }

    /// What was known when the API server last answered.
    fn old(&self, cell: &Cell, error: &ApiError) -> Option<Object> {
        let mut state = cell.state();
        if !std::mem::replace(&mut state.unconfirmed, true) {
            warn!(object = %cell.key.path(), error = %ErrorChain(error), "The API server can't be asked for an object; what it last said is used");
        }
        drop(state);
        cell.value()
    }

    /// Reads from disk what an earlier process knew, once.
    async fn load(&self, cell: &Cell) {
        if std::mem::replace(&mut cell.state().loaded, true) || cell.follow.view().read {
            return;
        }
        let file = FileKey::Object(cell.key.clone());
        let record = self.files.load::<ObjectRecord>(&file).await;
        if let Some(object) = record.and_then(|record| record.object(&cell.key)) {
            let key = (cell.key.namespace.clone(), cell.key.name.clone());
            cell.follow.fill([(key, object)].into());
        }
    }
}
