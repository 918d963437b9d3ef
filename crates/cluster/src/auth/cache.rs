//! What was judged, for a while; and judgements that are under way, once each.

use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rubelet_server::secure::AuthError;
use sha2::{Digest as _, Sha256};
use tokio::{sync::watch, time::Instant};

/// So many judgements are remembered; those that end soonest go first.
const REMEMBERED: usize = 1024;

/// So many are under way at a time; more are refused.
const UNDER_WAY: usize = 256;

/// A question: its digest, as it may hold a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Question([u8; 32]);

impl Question {
    pub(super) fn new(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }
}

type Outcome<V> = Option<Result<V, AuthError>>;

enum Entry<V> {
    UnderWay(watch::Receiver<Outcome<V>>),
    Known { value: V, until: Instant },
}

/// Judgements. Clones share them.
pub(super) struct Judgements<V>(Arc<Mutex<HashMap<Question, Entry<V>>>>);

impl<V> Clone for Judgements<V> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<V: Clone + Send + Sync + 'static> Judgements<V> {
    pub(super) fn new() -> Self {
        Self(Arc::default())
    }

    /// The judgement on a question, from memory if it is there. `ask` returns it with how long it
    /// may be remembered; it goes on to its end when nobody waits any more.
    pub(super) async fn get<F>(
        &self,
        question: Question,
        ask: impl FnOnce() -> F,
    ) -> Result<V, AuthError>
    where
        F: Future<Output = Result<(V, Duration), AuthError>> + Send + 'static,
    {
        let mut waiting = match self.find(question)? {
            Found::Known(value) => return Ok(value),
            Found::UnderWay(waiting) => waiting,
            Found::Begun(told, waiting) => {
                tokio::spawn(self.clone().learn(question, ask(), told));
                waiting
            }
        };
        let outcome = waiting.wait_for(Option::is_some).await;
        // The sender goes without a word only in a panic.
        let outcome = outcome.ok().and_then(|outcome| outcome.clone());
        outcome.unwrap_or_else(|| Err(AuthError("the question was dropped".to_owned())))
    }

    async fn learn<F>(self, question: Question, ask: F, told: watch::Sender<Outcome<V>>)
    where
        F: Future<Output = Result<(V, Duration), AuthError>>,
    {
        let outcome = ask.await;
        let mut entries = self.entries();
        entries.remove(&question);
        let outcome = outcome.map(|(value, ttl)| {
            if !ttl.is_zero() {
                make_room(&mut entries);
                let known = Entry::Known {
                    value: value.clone(),
                    until: Instant::now() + ttl,
                };
                entries.insert(question, known);
            }
            value
        });
        drop(entries);
        told.send_replace(Some(outcome));
    }

    fn find(&self, question: Question) -> Result<Found<V>, AuthError> {
        let mut entries = self.entries();
        match entries.get(&question) {
            Some(Entry::Known { value, until }) if *until > Instant::now() => {
                return Ok(Found::Known(value.clone()));
            }
            Some(Entry::UnderWay(waiting)) if waiting.has_changed().is_ok() => {
                return Ok(Found::UnderWay(waiting.clone()));
            }
            _ => {}
        }
        let under_way = |entry: &&Entry<V>| matches!(entry, Entry::UnderWay(_));
        if entries.values().filter(under_way).count() >= UNDER_WAY {
            return Err(AuthError("too many questions at a time".to_owned()));
        }
        let (told, waiting) = watch::channel(None);
        entries.insert(question, Entry::UnderWay(waiting.clone()));
        Ok(Found::Begun(told, waiting))
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<Question, Entry<V>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries().len()
    }
}

enum Found<V> {
    Known(V),
    UnderWay(watch::Receiver<Outcome<V>>),
    Begun(watch::Sender<Outcome<V>>, watch::Receiver<Outcome<V>>),
}

fn make_room<V>(entries: &mut HashMap<Question, Entry<V>>) {
    if entries.len() < REMEMBERED {
        return;
    }
    let now = Instant::now();
    entries.retain(|_, entry| match entry {
        Entry::UnderWay(waiting) => waiting.has_changed().is_ok(),
        Entry::Known { until, .. } => *until > now,
    });
    while entries.len() >= REMEMBERED {
        let ends = |entry: &Entry<V>| match entry {
            Entry::Known { until, .. } => Some(*until),
            Entry::UnderWay(_) => None,
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
