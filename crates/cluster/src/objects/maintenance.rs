//! Periodic work: idle watches end, tokens are refreshed, objects that are not watched are read again,
//! and changes are written to disk.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep, sleep_until};

use super::{
    ChangeDetection,
    files::{FileContent, FileKey},
    records::ObjectRecord,
    shared::{ObjectsInner, ObjectsState, TrackedPod},
    tokens::{self, instant_of},
};

/// The shortest time after which an unread object is not watched any more.
const IDLE_MIN: Duration = Duration::from_secs(60);
/// The replacement of a token is tried again after this time; upstream's volumes do so each time
/// that they are written, once in 60 to 90 s.
const TOKEN_RETRY: Duration = Duration::from_secs(60);
/// Changes within this time are handled together.
const COALESCE: Duration = Duration::from_millis(500);
/// Wall clocks may be set, so deadlines are recomputed after this time.
const RECHECK_AFTER: Duration = Duration::from_secs(3600);

impl ObjectsInner {
    /// Does what is due, forever.
    pub(super) async fn run(self: &Arc<Self>) {
        self.files.prepare().await;
        tokio::join!(self.maintain(), self.writes());
    }

    async fn maintain(self: &Arc<Self>) {
        let mut refresh = Instant::now() + self.sync_frequency;
        loop {
            let now = Instant::now();
            let mut next = now + RECHECK_AFTER;
            next = next
                .min(self.stop_idle(now))
                .min(self.notify_due_tokens(now));
            if self.detection != ChangeDetection::Watch {
                if refresh <= now {
                    self.notify_volume_users();
                    refresh = now + self.sync_frequency;
                }
                next = next.min(refresh);
            }
            tokio::select! {
                () = sleep_until(next) => {}
                // Pods come and go in crowds.
                () = self.wake.notified() => sleep(COALESCE).await,
            }
        }
    }

    /// Ends watches of objects that only starts of containers need, when there were none for a
    /// while; returns when the next one is due. What running pods see in their volumes is watched
    /// as long as they run.
    fn stop_idle(&self, now: Instant) -> Instant {
        let idle = self.sync_frequency.saturating_mul(5).max(IDLE_MIN);
        let mut next = now + RECHECK_AFTER;
        let mut state = self.state();
        for cached in state.objects_by_key.values() {
            if !cached.cache.runs() || cached.has_volumes() {
                continue;
            }
            let due = cached.state().used_at + idle;
            if !cached.cache.view().confirmed {
                // An answer that is on its way is not thrown away.
                next = next.min(now + idle);
            } else if due <= now {
                cached.cache.stop();
            } else {
                next = next.min(due);
            }
        }
        let pods = || state.pods.values().map(|tracked| &tracked.pod.spec);
        let links = pods().any(|spec| spec.enable_service_links);
        let kubernetes = !links && !state.pods.is_empty();
        let classes = pods().any(|spec| spec.runtime_class.is_some());
        let unneeded = &mut state.unneeded;
        for (needed, since, runs, stop) in [
            (
                links,
                &mut unneeded.services,
                self.services.runs(),
                (|this| this.services.end()) as fn(&Self),
            ),
            (
                kubernetes,
                &mut unneeded.kubernetes,
                self.kubernetes.runs(),
                |this| this.kubernetes.end(),
            ),
            (
                classes,
                &mut unneeded.classes,
                self.classes.runs(),
                |this| this.classes.end(),
            ),
        ] {
            if needed || !runs {
                *since = None;
                continue;
            }
            let due = *since.get_or_insert(now) + idle;
            if due <= now {
                stop(self);
            } else {
                next = next.min(due);
            }
        }
        next
    }

    /// Notifies pods whose tokens must be replaced; returns when the next ones are due.
    fn notify_due_tokens(&self, now: Instant) -> Instant {
        let wall = self.clock.now();
        let mut next = now + RECHECK_AFTER;
        let mut state = self.state();
        for tracked in state.pods.values_mut() {
            let mut tells = false;
            let tokens = tracked.tokens.iter_mut();
            for (_, held) in tokens.filter(|(request, _)| !request.is_for_pulls()) {
                let mut due = instant_of(held.refresh_at, wall);
                if let Some(tried_at) = held.tried_at {
                    due = due.max(tried_at + TOKEN_RETRY);
                }
                if due <= now {
                    tells = true;
                    held.tried_at = Some(now);
                    due = now + TOKEN_RETRY;
                }
                next = next.min(due);
            }
            if tells {
                tracked.tell();
            }
        }
        next
    }

    /// Has the volumes of objects that are not watched refreshed.
    fn notify_volume_users(&self) {
        let state = self.state();
        let has_volume = |tracked: &&TrackedPod| {
            tracked
                .uses
                .values()
                .any(|of| *of == super::object_refs::Use::Volume)
        };
        state
            .pods
            .values()
            .filter(has_volume)
            .for_each(TrackedPod::tell);
    }

    async fn writes(&self) {
        loop {
            self.write.notified().await;
            sleep(COALESCE).await;
            self.flush().await;
        }
    }

    /// Writes what is not written yet.
    pub(super) async fn flush(&self) {
        // Content that another task is writing is written when this returns.
        let _writing = self.writing.lock().await;
        let dirty = self.take_dirty();
        let contents = {
            let state = self.state();
            let contents = dirty.into_iter().filter_map(|key| {
                let content = self.content(&state, &key)?;
                Some((key, content))
            });
            contents.collect::<Vec<_>>()
        };
        if !contents.is_empty() {
            self.files.write(contents).await;
        }
    }

    /// The desired content of a file: `Some(None)` removes it, `None` leaves it unchanged.
    fn content(&self, state: &ObjectsState, key: &FileKey) -> Option<Option<FileContent>> {
        Some(match key {
            FileKey::Object(object) => {
                let cached = state.objects_by_key.get(object);
                // One pod released it and another uses it now: the file may hold the only copy.
                if cached.is_some_and(|cached| !cached.cache.view().read) {
                    return None;
                }
                cached
                    .and_then(|cached| cached.value())
                    .map(|value| FileContent::Object(ObjectRecord::new(object, &value)))
            }
            FileKey::Tokens(uid) => state
                .pods
                .get(uid)
                .map(|tracked| FileContent::Tokens(tokens::record(tracked))),
            FileKey::Services => Some(FileContent::Services(self.services_record(state)?)),
            FileKey::Classes => Some(FileContent::Classes(self.classes_record()?)),
        })
    }
}
