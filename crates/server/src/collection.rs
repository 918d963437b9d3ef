//! Objects with resource versions: what a list and a watch need, in bounded memory.
//!
//! There is no log of changes. Each live object is kept once, ordered by the version of its last
//! change, and so a watch is a walk along the versions: a reader that falls behind skips the states
//! in between and still ends at the latest one. Only deletions need memory beyond the live objects;
//! a fixed number of them is remembered, and a reader older than that must list again.

use std::{collections::BTreeMap, sync::Arc};

use futures_util::stream;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use crate::{Expired, Listing, Object, WatchEvent, WatchKind, WatchStream};

/// The objects of one resource. Share it by `Arc`.
pub struct Collection {
    state: Mutex<CollectionState>,
    newest: watch::Sender<u64>,
}

struct CollectionState {
    index: BTreeMap<Key, u64>,
    by_version: BTreeMap<u64, ObjectVersion>,
    newest: u64,
    /// A reader at an older version may have missed a change.
    horizon: u64,
    deletions: usize,
    max_deletions: usize,
}

type Key = (Arc<str>, Arc<str>);

struct ObjectVersion {
    object: Object,
    created: u64,
    deleted: bool,
}

impl Collection {
    /// An empty collection whose versions begin above `first_version`.
    ///
    /// Versions must not repeat over restarts of the agent, or a client that was away would miss
    /// changes: pass the wall clock in microseconds at start. `max_deletions` is how many deletions
    /// are remembered for slow readers.
    #[must_use]
    pub fn new(first_version: u64, max_deletions: usize) -> Self {
        Self {
            state: Mutex::new(CollectionState {
                index: BTreeMap::new(),
                by_version: BTreeMap::new(),
                newest: first_version,
                horizon: first_version,
                deletions: 0,
                max_deletions,
            }),
            newest: watch::Sender::new(first_version),
        }
    }

    fn state(&self) -> MutexGuard<'_, CollectionState> {
        self.state.lock()
    }

    /// Adds the object, or replaces the one of the same namespace and name. Returns its version.
    pub fn put(&self, object: Object) -> u64 {
        let version = self.state().put(object);
        self.newest.send_replace(version);
        version
    }

    /// Removes an object; false if it does not exist.
    pub fn remove(&self, namespace: &str, name: &str) -> bool {
        let removed = self.state().remove(&(namespace.into(), name.into()));
        if let Some(version) = removed {
            self.newest.send_replace(version);
        }
        removed.is_some()
    }

    /// All objects, ordered by namespace and name.
    #[must_use]
    pub fn listing(&self) -> Listing {
        let state = self.state();
        let items = state
            .index
            .values()
            .map(|version| state.by_version[version].object.clone());
        Listing {
            resource_version: state.newest,
            items: items.collect(),
        }
    }

    /// The changes after `since`; the stream ends only with [`Expired`].
    ///
    /// # Errors
    /// `since` is older than what is remembered, or was never a version of this collection.
    pub fn watch(self: &Arc<Self>, since: u64) -> Result<WatchStream, Expired> {
        let signal = self.newest.subscribe();
        {
            let state = self.state();
            if since < state.horizon || since > state.newest {
                return Err(Expired);
            }
        }
        let reader = Reader {
            collection: Arc::clone(self),
            signal,
            position: Some(since),
        };
        Ok(Box::pin(stream::unfold(reader, |mut reader| async move {
            let item = reader.next().await?;
            Some((item, reader))
        })))
    }
}

impl CollectionState {
    fn put(&mut self, mut object: Object) -> u64 {
        let version = self.advance();
        object.resource_version = version;
        let key = (Arc::clone(&object.namespace), Arc::clone(&object.name));
        let before = self
            .index
            .insert(key, version)
            .and_then(|old| self.by_version.remove(&old));
        let created = before.map_or(version, |entry| entry.created);
        self.by_version.insert(
            version,
            ObjectVersion {
                object,
                created,
                deleted: false,
            },
        );
        version
    }

    fn remove(&mut self, key: &Key) -> Option<u64> {
        let old = self.index.remove(key)?;
        let mut entry = self.by_version.remove(&old)?;
        let version = self.advance();
        entry.object.resource_version = version;
        entry.deleted = true;
        self.by_version.insert(version, entry);
        self.deletions += 1;
        if self.deletions > self.max_deletions {
            self.forget_oldest_deletion();
        }
        Some(version)
    }

    fn forget_oldest_deletion(&mut self) {
        let oldest = self.by_version.iter().find(|(_, entry)| entry.deleted);
        if let Some(version) = oldest.map(|(version, _)| *version) {
            self.by_version.remove(&version);
            self.deletions -= 1;
            self.horizon = version;
        }
    }

    fn advance(&mut self) -> u64 {
        self.newest += 1;
        self.newest
    }

    /// The first change after `position` that matters to a reader at that position.
    fn change_after(&self, position: u64) -> Result<Option<WatchEvent>, Expired> {
        if position < self.horizon {
            return Err(Expired);
        }
        let unseen = |entry: &ObjectVersion| entry.created > position;
        let mut later = self
            .by_version
            .range(position + 1..)
            .map(|(_, entry)| entry);
        let entry = later.find(|entry| !(entry.deleted && unseen(entry)));
        Ok(entry.map(|entry| WatchEvent {
            kind: match (entry.deleted, unseen(entry)) {
                (true, _) => WatchKind::Deleted,
                (false, true) => WatchKind::Added,
                (false, false) => WatchKind::Modified,
            },
            object: entry.object.clone(),
        }))
    }
}

struct Reader {
    collection: Arc<Collection>,
    signal: watch::Receiver<u64>,
    /// `None` once the reader got [`Expired`].
    position: Option<u64>,
}

impl Reader {
    async fn next(&mut self) -> Option<Result<WatchEvent, Expired>> {
        loop {
            let position = self.position?;
            self.signal.mark_unchanged();
            let change = self.collection.state().change_after(position);
            match change {
                Err(expired) => {
                    self.position = None;
                    return Some(Err(expired));
                }
                Ok(Some(event)) => {
                    self.position = Some(event.object.resource_version);
                    return Some(Ok(event));
                }
                Ok(None) => self.signal.changed().await.ok()?,
            }
        }
    }
}
