//! Reading objects: from the cache, from the API server, and with that away from what was known
//! last.

use std::{sync::Arc, time::Duration};

use rubelet_base::ErrorChain;
use rubelet_kube::ApiError;
use tokio::time::{Instant, timeout};
use tracing::{debug, warn};

use super::{
    ChangeDetection, cached_object::CachedObject, files::FileKey, object_content::Object,
    object_key::ObjectKey, read_error::ObjectReadError, records::ObjectRecord,
    shared::ObjectsInner, wire,
};

/// Timeout of the first list of a watch, as in the kubelet.
pub(super) const WATCH_SYNC_TIMEOUT: Duration = Duration::from_secs(1);
/// Timeout of a request if an old value can be used instead.
pub(super) const STALE_FALLBACK: Duration = Duration::from_secs(5);
/// `Cache`: how long an object counts as fresh, unless the node object specifies it.
const DEFAULT_TTL: Duration = Duration::from_secs(60);

impl ObjectsInner {
    /// The current object; `None` if it does not exist.
    pub(super) async fn read(
        self: &Arc<Self>,
        key: &ObjectKey,
    ) -> Result<Option<Object>, ObjectReadError> {
        let cached = self
            .cached(key)
            .ok_or_else(|| ObjectReadError::NotRegistered(key.clone()))?;
        cached.state().used_at = Instant::now();
        if self.detection != ChangeDetection::Watch {
            return self.fetch(&cached).await;
        }
        if !cached.cache.runs() {
            self.watch(&cached);
            self.wake.notify_one();
        }
        if cached.cache.is_read_within(WATCH_SYNC_TIMEOUT).await {
            return Ok(cached.value());
        }
        // Told when there is an answer.
        cached.state().wake_when_read = true;
        self.load(&cached).await;
        if !cached.cache.view().read {
            return Err(ObjectReadError::NotRead(key.word()));
        }
        match self.get(&cached).await {
            Ok(()) => Ok(cached.value()),
            Err(error) if error.is_transient() => Ok(self.old(&cached, &error)),
            Err(error) => {
                debug!(object = %key.path(), error = %ErrorChain(&error), "Cannot read an object");
                Err(ObjectReadError::NotRead(key.word()))
            }
        }
    }

    /// Without a watch: what was read lately, else the API server's answer.
    async fn fetch(&self, cached: &CachedObject) -> Result<Option<Object>, ObjectReadError> {
        let fetched_at = cached.state().fetched_at;
        if self.detection == ChangeDetection::Cache
            && fetched_at.is_some_and(|at| self.is_fresh(at))
        {
            return Ok(cached.value());
        }
        match self.get(cached).await {
            Ok(()) => {
                cached.state().fetched_at = Some(Instant::now());
                Ok(cached.value())
            }
            Err(error) if error.is_transient() => {
                self.load(cached).await;
                if cached.cache.view().read {
                    return Ok(self.old(cached, &error));
                }
                Err(error.into())
            }
            Err(_) if self.detection == ChangeDetection::Cache && fetched_at.is_some() => {
                Ok(cached.value())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn is_fresh(&self, at: Instant) -> bool {
        at.elapsed() < (self.ttl)().unwrap_or(DEFAULT_TTL)
    }

    /// Reads an object from the API server, once.
    async fn get(&self, cached: &CachedObject) -> Result<(), ApiError> {
        let path = cached.key.path();
        let answer = match timeout(STALE_FALLBACK, self.api.get(&path)).await {
            Ok(Ok(found)) => Some(wire::object(cached.key.kind, found)),
            Ok(Err(error)) if error.is_not_found() => None,
            Ok(Err(error)) => return Err(error),
            Err(_) => return Err(ApiError::TimedOut),
        };
        let name = (cached.key.namespace.clone(), cached.key.name.clone());
        cached.cache.note(name, answer);
        cached.state().unconfirmed = false;
        self.is_dirty(FileKey::Object(cached.key.clone()));
        Ok(())
    }

    /// Whether the API server is unreachable for this path.
    pub(super) async fn is_away(&self, path: &str) -> bool {
        match timeout(STALE_FALLBACK, self.api.get(path)).await {
            Ok(answer) => answer.is_err_and(|error| error.is_transient()),
            Err(_) => true,
        }
    }

    /// The value at the time when the API server last responded.
    fn old(&self, cached: &CachedObject, error: &ApiError) -> Option<Object> {
        let mut state = cached.state();
        if !std::mem::replace(&mut state.unconfirmed, true) {
            warn!(object = %cached.key.path(), error = %ErrorChain(error), "Cannot get an object from the API server; using the last known version");
        }
        drop(state);
        cached.value()
    }

    /// Reads from disk what an earlier process knew, once.
    async fn load(&self, cached: &CachedObject) {
        if std::mem::replace(&mut cached.state().loaded, true) || cached.cache.view().read {
            return;
        }
        let file = FileKey::Object(cached.key.clone());
        let record = self.files.load::<ObjectRecord>(&file).await;
        if let Some(object) = record.and_then(|record| record.object(&cached.key)) {
            let key = (cached.key.namespace.clone(), cached.key.name.clone());
            cached.cache.restore([(key, object)].into());
        }
    }
}
