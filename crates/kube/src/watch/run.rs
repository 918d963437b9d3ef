//! The run of a watcher: list, watch, and what to do when one of them ends.

use std::{collections::BTreeMap, convert::Infallible, time::Duration};

use rubelet_base::{Backoff, ErrorChain};
use serde::de::DeserializeOwned;
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout_at},
};

use super::{
    Change, Slot,
    event::{Event, Meta},
    lines::{Lines, TooLong},
    list::{Listed, list},
    target::WatchTarget,
    unread::UnreadOfWatch,
};
use crate::{
    answer::MAX_OBJECT,
    client::Client,
    error::{ApiError, BodyError},
    jitter::Jitter,
    transport::AnswerBody,
};

/// Delays after failures, before they are varied: client-go's.
const FIRST_DELAY: Duration = Duration::from_millis(800);
const MAX_DELAY: Duration = Duration::from_secs(30);
/// A watch that lived for so long was a good one: what comes after it begins with the first delay.
const GOOD: Duration = Duration::from_secs(10);
/// A server that ends watches sooner than this is not asked again at once.
const SHORT: Duration = Duration::from_secs(1);
/// A watch that brought no JSON so often in a row does not go on from where it was.
const DAMAGED: u32 = 3;
/// Some proxies hold back the head of an answer until its first byte, which on a quiet watch is the
/// first bookmark after about a minute.
const HEAD_PATIENCE: Duration = Duration::from_secs(120);
/// While the server sends what there is, it does not pause for longer.
const INITIAL_PATIENCE: Duration = Duration::from_secs(30);
/// A watch that goes on for so long after its end was agreed on is dead.
const OVERDUE: Duration = Duration::from_secs(30);
/// Bookmarks come each minute. Where there were any, so long a silence means that nobody is there
/// any more, whatever sits between answers our pings.
const SILENCE: Duration = Duration::from_secs(4 * 60);

/// All that a run needs.
pub(super) struct Feed<T> {
    client: Client,
    target: WatchTarget,
    pub(super) lasting: Duration,
    slot: Slot<T>,
    problem: watch::Sender<Option<String>>,
    unread: UnreadOfWatch,
    jitter: Jitter,
    backoff: Backoff,
    /// Since when it gets through.
    works_since: Option<Instant>,
}

/// A watch that is open.
struct Open {
    body: AnswerBody,
    lines: Lines,
    /// When it has ended, or is dead.
    until: Instant,
    /// Bookmarks come on it.
    bookmarks: bool,
    epoch: watch::Receiver<u64>,
}

/// How a watch came to its end.
enum End {
    /// As agreed, or because connections are made anew.
    Normal,
    /// The server closed it early, or it is dead.
    Broken(ApiError),
}

impl<T: DeserializeOwned + Send + 'static> Feed<T> {
    pub(super) fn new(
        client: Client,
        target: WatchTarget,
        lasting: Duration,
        slot: Slot<T>,
        problem: watch::Sender<Option<String>>,
    ) -> Self {
        Self {
            jitter: Jitter::new(client.seed()),
            unread: UnreadOfWatch::new::<T>(client.unread().clone(), &target),
            client,
            target,
            lasting,
            slot,
            problem,
            backoff: Backoff::new(FIRST_DELAY, MAX_DELAY),
            works_since: None,
        }
    }

    /// Lists and watches for ever.
    pub(super) async fn follow(mut self) -> Infallible {
        let mut version: Option<Box<str>> = None;
        let mut relisted: Option<Instant> = None;
        let mut damaged = 0;
        loop {
            let result = self.turn(&mut version).await;
            let worked = self.works_since.take().map(|since| since.elapsed());
            if worked >= Some(GOOD) {
                self.backoff.reset();
            }
            let error = match result {
                Ok(()) if worked >= Some(SHORT) => continue,
                Ok(()) => None,
                Err(error) => Some(error),
            };
            let mut delay = self.backoff.advance();
            if let Some(error) = &error {
                tracing::debug!(collection = %self.target, error = %ErrorChain(error), "watch ended");
                match error {
                    ApiError::Body(BodyError::Json(_)) => damaged += 1,
                    _ => damaged = 0,
                }
                if damaged >= DAMAGED {
                    // What comes after this version can't be read. A list leads past it.
                    (damaged, version) = (0, None);
                }
                if error.is_gone() && version.take().is_some() {
                    // That happens, and what was missed is wanted at once; not again and again.
                    let now = Instant::now();
                    let last = relisted.replace(now);
                    if last.is_none_or(|last| now - last >= GOOD) {
                        continue;
                    }
                }
                let text = format!("{}: {}", self.target, ErrorChain(error));
                self.problem.send_replace(Some(text));
                delay = delay.max(error.retry_after().unwrap_or_default());
            }
            sleep(self.jitter.up_to_double(delay)).await;
        }
    }

    /// One watch, with a list before it if there is no version to go on from.
    async fn turn(&mut self, version: &mut Option<Box<str>>) -> Result<(), ApiError> {
        let mut open = match version {
            // Boxed, so that a watcher at rest is small.
            Some(version) => Box::pin(self.open(version)).await?,
            None => {
                let (listed, open) = Box::pin(self.begin()).await?;
                *version = Some(listed.version);
                self.works();
                self.slot.put(Change::Listed(listed.items)).await;
                match open {
                    Some(open) => open,
                    None => {
                        let version = version.as_deref().unwrap_or_default();
                        Box::pin(self.open(version)).await?
                    }
                }
            }
        };
        self.works();
        loop {
            let event = match open.event::<T>(None).await {
                Ok(event) => event,
                Err(End::Normal) => return Ok(()),
                Err(End::Broken(error)) => return Err(error),
            };
            match event {
                Event::Applied(meta, object) => {
                    let object = self.unread.read(|| meta.clone(), object);
                    advance(version, meta.resource_version);
                    self.slot.put(Change::Applied(object)).await;
                }
                Event::Deleted(meta, object) => {
                    self.unread.gone(&meta);
                    advance(version, meta.resource_version);
                    self.slot.put(Change::Deleted(object.value)).await;
                }
                Event::Bookmark { version: now, .. } => {
                    open.bookmarks = true;
                    advance(version, now);
                }
                Event::Unread { meta, problem } => {
                    self.unread.unread(&meta, problem);
                    advance(version, meta.resource_version);
                }
                Event::Error(error) => return Err(error),
                Event::Damaged(error) => return Err(ApiError::Body(BodyError::Json(error))),
            }
        }
    }

    /// What there is, and the watch that goes on from there if the list came on one.
    async fn begin(&mut self) -> Result<(Listed<T>, Option<Open>), ApiError> {
        let mut refused = false;
        if self.client.has_streaming_lists() {
            match self.streaming_list().await {
                Ok((listed, open)) => return Ok((listed, Some(open))),
                Err(error) => {
                    // An older server, or one where it is switched off, does not know the
                    // parameters.
                    refused = matches!(error.code(), Some(400 | 405 | 406 | 422));
                    let damaged = matches!(error, ApiError::Body(BodyError::Json(_)));
                    if !refused && !damaged && !matches!(error, ApiError::TimedOut) {
                        return Err(error);
                    }
                    tracing::debug!(
                        collection = %self.target,
                        error = %ErrorChain(&error),
                        "no streaming list"
                    );
                }
            }
        }
        let listed = list(&self.client, &self.target, &mut self.unread).await?;
        if refused {
            self.client.without_streaming_lists();
        }
        Ok((listed, None))
    }

    async fn streaming_list(&mut self) -> Result<(Listed<T>, Open), ApiError> {
        let seconds = self.seconds();
        let path = self.target.streaming_list_path(seconds);
        let mut open = self.watch(&path, self.client.timeout(), seconds).await?;
        // In the order of names; changes may come in between.
        let mut found: BTreeMap<(Box<str>, Box<str>), T> = BTreeMap::new();
        let key = |meta: Meta| (meta.namespace, meta.name);
        self.unread.list_begins();
        loop {
            let event = match open.event::<T>(Some(INITIAL_PATIENCE)).await {
                Ok(event) => event,
                Err(End::Normal) => return Err(ApiError::TimedOut),
                Err(End::Broken(error)) => return Err(error),
            };
            match event {
                Event::Applied(meta, object) => {
                    let object = self.unread.read(|| meta.clone(), object);
                    found.insert(key(meta), object);
                }
                Event::Deleted(meta, _) => {
                    self.unread.gone(&meta);
                    found.remove(&key(meta));
                }
                Event::Bookmark {
                    version,
                    initial_events_end: true,
                } => {
                    self.unread.list_ended();
                    let items = found.into_values().collect();
                    return Ok((Listed { items, version }, open));
                }
                Event::Bookmark { .. } => {}
                Event::Unread { meta, problem } => self.unread.unread(&meta, problem),
                Event::Error(error) => return Err(error),
                Event::Damaged(error) => return Err(ApiError::Body(BodyError::Json(error))),
            }
        }
    }

    async fn open(&mut self, version: &str) -> Result<Open, ApiError> {
        let seconds = self.seconds();
        let path = self.target.watch_path(version, seconds);
        self.watch(&path, HEAD_PATIENCE, seconds).await
    }

    async fn watch(&self, path: &str, patience: Duration, seconds: u64) -> Result<Open, ApiError> {
        let epoch = self.client.epoch();
        let body = self.client.stream(path, patience).await?;
        Ok(Open {
            body,
            lines: Lines::default(),
            until: Instant::now() + Duration::from_secs(seconds) + OVERDUE,
            bookmarks: false,
            epoch,
        })
    }

    /// How long the next watch is to last.
    fn seconds(&mut self) -> u64 {
        self.jitter.up_to_double(self.lasting).as_secs().max(1)
    }

    fn works(&mut self) {
        self.works_since.get_or_insert_with(Instant::now);
        self.problem
            .send_if_modified(|problem| problem.take().is_some());
    }
}

/// A server that names no version leaves the last one in force.
fn advance(version: &mut Option<Box<str>>, now: Box<str>) {
    if !now.is_empty() {
        *version = Some(now);
    }
}

impl Open {
    /// The next event. `pause` is how long the server may be silent.
    async fn event<T: DeserializeOwned>(
        &mut self,
        pause: Option<Duration>,
    ) -> Result<Event<T>, End> {
        loop {
            match self.lines.next(MAX_OBJECT, Event::read) {
                Ok(Some(event)) => return Ok(event),
                Ok(None) => {}
                Err(TooLong) => {
                    let limit = MAX_OBJECT / 1024 / 1024;
                    return Err(End::Broken(ApiError::Body(BodyError::TooLarge(limit))));
                }
            }
            let silence = pause.or(self.bookmarks.then_some(SILENCE));
            let until = match silence {
                Some(silence) => self.until.min(Instant::now() + silence),
                None => self.until,
            };
            let chunk = tokio::select! {
                chunk = timeout_at(until, self.body.chunk()) => chunk,
                changed = self.epoch.changed() => {
                    // The client is held by the feed: its epoch does not go away.
                    let _still_there = changed;
                    return Err(End::Normal);
                }
            };
            match chunk {
                Err(_) if until == self.until => return Err(End::Normal),
                Err(_) => return Err(End::Broken(ApiError::TimedOut)),
                Ok(None) => return Err(End::Normal),
                Ok(Some(Err(error))) => {
                    // HTTP/1.1 servers that go away end a watch in the middle of nothing.
                    let error = ApiError::Body(BodyError::Broken(error));
                    return Err(End::Broken(error));
                }
                Ok(Some(Ok(piece))) => self.lines.feed(piece),
            }
        }
    }
}
