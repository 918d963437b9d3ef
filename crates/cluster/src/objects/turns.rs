//! What is due without anybody asking: watches that nobody needs end, tokens are replaced, objects
//! that are not watched are read again, and what is known goes to disk.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep, sleep_until};

use super::{
    ChangeDetection,
    files::{FileContent, FileKey},
    records::ObjectRecord,
    shared::{Shared, State, Tracked},
    tokens::{self, instant_of},
};

/// The shortest time after which an unread object is not watched any more.
const IDLE_MIN: Duration = Duration::from_secs(60);
/// The replacement of a token is tried again after this time; upstream's volumes do so each time
/// that they are written, once in 60 to 90 s.
const TOKEN_RETRY: Duration = Duration::from_secs(60);
/// What is to be done waits so long for more of it.
const COALESCE: Duration = Duration::from_millis(500);
/// Wall clocks are set, so that moments are computed anew now and then.
const LOOK_AGAIN: Duration = Duration::from_secs(3600);

impl Shared {
    /// Does what is due, for ever.
    pub(super) async fn run(self: &Arc<Self>) {
        self.files.prepare().await;
        tokio::join!(self.turns(), self.writes());
    }

    async fn turns(self: &Arc<Self>) {
        let mut refresh = Instant::now() + self.sync_frequency;
        loop {
            let now = Instant::now();
            let mut next = now + LOOK_AGAIN;
            next = next.min(self.stop_idle(now)).min(self.tell_of_tokens(now));
            if self.detection != ChangeDetection::Watch {
                if refresh <= now {
                    self.tell_of_volumes();
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
        let mut next = now + LOOK_AGAIN;
        let mut state = self.state();
        for cell in state.cells.values() {
            if !cell.follow.runs() || cell.has_volumes() {
                continue;
            }
            let due = cell.state().used_at + idle;
            if !cell.follow.view().confirmed {
                // An answer that is on its way is not thrown away.
                next = next.min(now + idle);
            } else if due <= now {
                cell.follow.stop();
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

    /// Tells pods whose tokens are to be replaced; returns when the next ones are.
    fn tell_of_tokens(&self, now: Instant) -> Instant {
        let wall = self.clock.now();
        let mut next = now + LOOK_AGAIN;
        let mut state = self.state();
        for tracked in state.pods.values_mut() {
            let mut tells = false;
            for held in tracked.tokens.values_mut() {
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

    /// Volumes of objects that are not watched are looked at again.
    fn tell_of_volumes(&self) {
        let state = self.state();
        let draw = |tracked: &&Tracked| {
            tracked
                .uses
                .values()
                .any(|of| *of == super::draws::Use::Volume)
        };
        state.pods.values().filter(draw).for_each(Tracked::tell);
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
        // What somebody else writes just now is written when this returns.
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

    /// What a file is to hold: nothing of it, or `None`: leave it as it is.
    fn content(&self, state: &State, key: &FileKey) -> Option<Option<FileContent>> {
        Some(match key {
            FileKey::Object(object) => {
                let cell = state.cells.get(object);
                // One pod let go of it and another has taken it up: what the file holds may be all
                // that is known.
                if cell.is_some_and(|cell| !cell.follow.view().read) {
                    return None;
                }
                cell.and_then(|cell| cell.value())
                    .map(|value| FileContent::Object(ObjectRecord::new(object, &value)))
            }
            FileKey::Tokens(uid) => state
                .pods
                .get(uid)
                .map(|tracked| FileContent::Tokens(tokens::record(tracked.tokens.iter()))),
            FileKey::Services => Some(FileContent::Services(self.services_record(state)?)),
            FileKey::Classes => Some(FileContent::Classes(self.classes_record()?)),
        })
    }
}
