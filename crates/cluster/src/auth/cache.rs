//! Cache of review results, and one review in flight for each key.

use std::{collections::HashMap, future::Future, sync::Arc, time::Duration};

use aws_lc_rs::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use parking_lot::{Mutex, MutexGuard};
use rubelet_http_core::user::AuthError;
use tokio::{sync::watch, time::Instant};

/// Largest number of cached results; those that expire first are evicted first.
const MAX_CACHED: usize = 1024;

/// Largest number of reviews in flight; more are rejected.
const MAX_IN_FLIGHT: usize = 256;

/// Identifies a review: a digest, because its content may be a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ReviewKey([u8; SHA256_OUTPUT_LEN]);

impl ReviewKey {
    pub(super) fn new(text: &str) -> Self {
        let digest = digest(&SHA256, text.as_bytes());
        let whole = digest.as_ref().first_chunk().copied();
        Self(whole.expect("SHA-256 has 32 bytes"))
    }
}

type ReviewResult<V> = Option<Result<V, AuthError>>;

enum CacheEntry<V> {
    InFlight(watch::Receiver<ReviewResult<V>>),
    Known { value: V, until: Instant },
}

/// Review results. Clones share them.
pub(super) struct ReviewCache<V>(Arc<Mutex<HashMap<ReviewKey, CacheEntry<V>>>>);

impl<V> Clone for ReviewCache<V> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<V: Clone + Send + Sync + 'static> ReviewCache<V> {
    pub(super) fn new() -> Self {
        Self(Arc::default())
    }

    /// The result of a review, from the cache if it is there. `ask` returns it with its time to live;
    /// it runs to its end even if the caller is dropped.
    pub(super) async fn get<F>(
        &self,
        question: ReviewKey,
        ask: impl FnOnce() -> F,
    ) -> Result<V, AuthError>
    where
        F: Future<Output = Result<(V, Duration), AuthError>> + Send + 'static,
    {
        let mut waiting = match self.find(question)? {
            CacheLookup::Known(value) => return Ok(value),
            CacheLookup::InFlight(waiting) => waiting,
            CacheLookup::Started(sender, waiting) => {
                tokio::spawn(self.clone().learn(question, ask(), sender));
                waiting
            }
        };
        let outcome = waiting.wait_for(Option::is_some).await;
        // The sender is dropped without a result only in a panic.
        let outcome = outcome.ok().and_then(|outcome| outcome.clone());
        outcome.unwrap_or_else(|| Err(AuthError("the review was dropped".to_owned())))
    }

    async fn learn<F>(self, question: ReviewKey, ask: F, sender: watch::Sender<ReviewResult<V>>)
    where
        F: Future<Output = Result<(V, Duration), AuthError>>,
    {
        let outcome = ask.await;
        let mut entries = self.entries();
        entries.remove(&question);
        let outcome = outcome.map(|(value, ttl)| {
            if !ttl.is_zero() {
                make_room(&mut entries);
                let known = CacheEntry::Known {
                    value: value.clone(),
                    until: Instant::now() + ttl,
                };
                entries.insert(question, known);
            }
            value
        });
        drop(entries);
        sender.send_replace(Some(outcome));
    }

    fn find(&self, question: ReviewKey) -> Result<CacheLookup<V>, AuthError> {
        let mut entries = self.entries();
        match entries.get(&question) {
            Some(CacheEntry::Known { value, until }) if *until > Instant::now() => {
                return Ok(CacheLookup::Known(value.clone()));
            }
            // An error means that the review panicked: another one begins.
            Some(CacheEntry::InFlight(waiting)) if waiting.has_changed().is_ok() => {
                return Ok(CacheLookup::InFlight(waiting.clone()));
            }
            _ => {}
        }
        let under_way = |entry: &&CacheEntry<V>| matches!(entry, CacheEntry::InFlight(_));
        if entries.values().filter(under_way).count() >= MAX_IN_FLIGHT {
            return Err(AuthError("too many concurrent reviews".to_owned()));
        }
        let (sender, waiting) = watch::channel(None);
        entries.insert(question, CacheEntry::InFlight(waiting.clone()));
        Ok(CacheLookup::Started(sender, waiting))
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<ReviewKey, CacheEntry<V>>> {
        self.0.lock()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries().len()
    }
}

enum CacheLookup<V> {
    Known(V),
    InFlight(watch::Receiver<ReviewResult<V>>),
    Started(
        watch::Sender<ReviewResult<V>>,
        watch::Receiver<ReviewResult<V>>,
    ),
}

fn make_room<V>(entries: &mut HashMap<ReviewKey, CacheEntry<V>>) {
    if entries.len() < MAX_CACHED {
        return;
    }
    let now = Instant::now();
    entries.retain(|_, entry| match entry {
        CacheEntry::InFlight(waiting) => waiting.has_changed().is_ok(),
        CacheEntry::Known { until, .. } => *until > now,
    });
    while entries.len() >= MAX_CACHED {
        let ends = |entry: &CacheEntry<V>| match entry {
            CacheEntry::Known { until, .. } => Some(*until),
            CacheEntry::InFlight(_) => None,
        };
        let known = entries
            .iter()
            .filter_map(|(question, entry)| Some((*question, ends(entry)?)));
        // There are more entries than can be under way.
        let Some((soonest, _)) = known.min_by_key(|(_, until)| *until) else {
            return;
        };
        entries.remove(&soonest);
    }
}
