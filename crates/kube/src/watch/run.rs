//! The loop of a watcher: list, watch, and what to do when one of them ends.

use std::{collections::BTreeMap, convert::Infallible, time::Duration};

use rubelet_base::{Backoff, ErrorChain};
use serde::de::DeserializeOwned;
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout_at},
};

use super::{
    Change, ChangeSlot,
    event::{Event, Meta},
    lines::{Lines, TooLong},
    list::{Listed, list},
    reopen::{WatchReopener, requested},
    target::WatchTarget,
    unreadable::WatchUnreadable,
};
use crate::{
    client::Client,
    error::{ApiError, BodyError},
    jitter::Jitter,
    response::MAX_OBJECT,
    transport::ResponseBody,
};

/// Delays after failures, before they are varied: client-go's.
const FIRST_DELAY: Duration = Duration::from_millis(800);
const MAX_DELAY: Duration = Duration::from_secs(30);
/// A watch that worked at least this long resets the backoff.
const HEALTHY_AFTER: Duration = Duration::from_secs(10);
/// After a watch shorter than this, the next one waits for the backoff.
const SHORTEST_WATCH: Duration = Duration::from_secs(1);
/// After this many responses in a row that are not JSON, everything is listed again.
const MAX_DAMAGED: u32 = 3;
/// Some proxies hold back the head of an answer until its first byte, which on a quiet watch is the
/// first bookmark after about a minute.
const HEADERS_TIMEOUT: Duration = Duration::from_secs(120);
/// The longest pause while the server sends the initial events.
const INITIAL_EVENTS_TIMEOUT: Duration = Duration::from_secs(30);
/// A watch that is open this long after its `timeoutSeconds` is dead.
const CLOSE_GRACE: Duration = Duration::from_secs(30);
/// Bookmarks arrive each minute. Once there were any, a silence of this length means that the API
/// server is gone, even if a proxy in between still answers HTTP/2 pings.
const BOOKMARK_TIMEOUT: Duration = Duration::from_secs(4 * 60);

/// The state of the list-and-watch loop.
pub(super) struct WatchLoop<T> {
    client: Client,
    target: WatchTarget,
    pub(super) min_timeout: Duration,
    pub(super) reopener: Option<WatchReopener>,
    slot: ChangeSlot<T>,
    problem: watch::Sender<Option<String>>,
    unreadable: WatchUnreadable,
    jitter: Jitter,
    backoff: Backoff,
    /// Since when the watch works.
    works_since: Option<Instant>,
}

/// A watch that is open.
struct OpenWatch {
    body: ResponseBody,
    lines: Lines,
    /// When it has ended, or is dead.
    until: Instant,
    /// Bookmarks come on it.
    bookmarks: bool,
    epoch: watch::Receiver<u64>,
}

/// The end of a watch.
enum WatchEnd {
    /// After `timeoutSeconds`, or because the client reconnects.
    Normal,
    /// The server closed it early, or it is dead.
    Broken(ApiError),
}

impl<T: DeserializeOwned + Send + 'static> WatchLoop<T> {
    pub(super) fn new(
        client: Client,
        target: WatchTarget,
        min_timeout: Duration,
        slot: ChangeSlot<T>,
        problem: watch::Sender<Option<String>>,
    ) -> Self {
        Self {
            jitter: Jitter::new(client.seed()),
            unreadable: WatchUnreadable::new::<T>(client.unreadable().clone(), &target),
            client,
            target,
            min_timeout,
            reopener: None,
            slot,
            problem,
            backoff: Backoff::new(FIRST_DELAY, MAX_DELAY),
            works_since: None,
        }
    }

    /// Lists and watches forever.
    pub(super) async fn follow(mut self) -> Infallible {
        let mut version: Option<Box<str>> = None;
        let mut relisted: Option<Instant> = None;
        let mut damaged = 0;
        loop {
            let result = self.list_and_watch(&mut version).await;
            let worked = self.works_since.take().map(|since| since.elapsed());
            if worked >= Some(HEALTHY_AFTER) {
                self.backoff.reset();
            }
            let error = match result {
                Ok(()) if worked >= Some(SHORTEST_WATCH) => continue,
                Ok(()) => None,
                Err(error) => Some(error),
            };
            let mut delay = self.backoff.advance();
            if let Some(error) = &error {
                tracing::debug!(collection = %self.target, error = %ErrorChain(error), "Watch ended");
                match error {
                    ApiError::Body(BodyError::Json(_)) => damaged += 1,
                    _ => damaged = 0,
                }
                if damaged >= MAX_DAMAGED {
                    // What comes after this version can't be read. A list leads past it.
                    (damaged, version) = (0, None);
                }
                if error.is_gone() && version.take().is_some() {
                    // A 410 is normal, and what was missed is needed at once; but not in a loop.
                    let now = Instant::now();
                    let last = relisted.replace(now);
                    if last.is_none_or(|last| now - last >= HEALTHY_AFTER) {
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

    /// One watch, after a list if there is no version to continue from.
    async fn list_and_watch(&mut self, version: &mut Option<Box<str>>) -> Result<(), ApiError> {
        let mut open = match version {
            // Boxed, so that a watcher at rest is small.
            Some(version) => Box::pin(self.open(version)).await?,
            None => {
                let (listed, open) = Box::pin(self.initial_list()).await?;
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
        let mut requests = self.reopener.as_ref().map(WatchReopener::requests);
        loop {
            let event = tokio::select! {
                event = open.event::<T>(None) => event,
                () = requested(&mut requests) => {
                    self.client.renew_watch_connection();
                    return Ok(());
                }
            };
            let event = match event {
                Ok(event) => event,
                Err(WatchEnd::Normal) => return Ok(()),
                Err(WatchEnd::Broken(error)) => return Err(error),
            };
            match event {
                Event::Applied(meta, object) => {
                    let object = self.unreadable.read(|| meta.clone(), object);
                    advance(version, meta.resource_version);
                    self.slot.put(Change::Applied(object)).await;
                }
                Event::Deleted(meta, object) => {
                    self.unreadable.gone(&meta);
                    advance(version, meta.resource_version);
                    self.slot.put(Change::Deleted(object.value)).await;
                }
                Event::Bookmark { version: now, .. } => {
                    open.bookmarks = true;
                    advance(version, now);
                }
                Event::Unreadable { meta, problem } => {
                    self.unreadable.unreadable(&meta, problem);
                    advance(version, meta.resource_version);
                }
                Event::Error(error) => return Err(error),
                Event::Damaged(error) => return Err(ApiError::Body(BodyError::Json(error))),
            }
        }
    }

    /// The first list, and the open watch if the list was a streaming one.
    async fn initial_list(&mut self) -> Result<(Listed<T>, Option<OpenWatch>), ApiError> {
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
                        "Streaming list failed; listing in pages"
                    );
                }
            }
        }
        let listed = list(&self.client, &self.target, &mut self.unreadable).await?;
        if refused {
            self.client.without_streaming_lists();
        }
        Ok((listed, None))
    }

    async fn streaming_list(&mut self) -> Result<(Listed<T>, OpenWatch), ApiError> {
        let seconds = self.seconds();
        let path = self.target.streaming_list_path(seconds);
        let mut open = self.watch(&path, self.client.timeout(), seconds).await?;
        // In the order of names; changes may come in between.
        let mut found: BTreeMap<(Box<str>, Box<str>), T> = BTreeMap::new();
        let key = |meta: Meta| (meta.namespace, meta.name);
        self.unreadable.list_begins();
        loop {
            let event = match open.event::<T>(Some(INITIAL_EVENTS_TIMEOUT)).await {
                Ok(event) => event,
                Err(WatchEnd::Normal) => return Err(ApiError::TimedOut),
                Err(WatchEnd::Broken(error)) => return Err(error),
            };
            match event {
                Event::Applied(meta, object) => {
                    let object = self.unreadable.read(|| meta.clone(), object);
                    found.insert(key(meta), object);
                }
                Event::Deleted(meta, _) => {
                    self.unreadable.gone(&meta);
                    found.remove(&key(meta));
                }
                Event::Bookmark {
                    version,
                    initial_events_end: true,
                } => {
                    self.unreadable.list_ended();
                    let items = found.into_values().collect();
                    return Ok((Listed { items, version }, open));
                }
                Event::Bookmark { .. } => {}
                Event::Unreadable { meta, problem } => self.unreadable.unreadable(&meta, problem),
                Event::Error(error) => return Err(error),
                Event::Damaged(error) => return Err(ApiError::Body(BodyError::Json(error))),
            }
        }
    }

    async fn open(&mut self, version: &str) -> Result<OpenWatch, ApiError> {
        let seconds = self.seconds();
        let path = self.target.watch_path(version, seconds);
        self.watch(&path, HEADERS_TIMEOUT, seconds).await
    }

    async fn watch(
        &self,
        path: &str,
        patience: Duration,
        seconds: u64,
    ) -> Result<OpenWatch, ApiError> {
        let epoch = self.client.epoch();
        let body = self.client.stream(path, patience).await?;
        Ok(OpenWatch {
            body,
            lines: Lines::default(),
            until: Instant::now() + Duration::from_secs(seconds) + CLOSE_GRACE,
            bookmarks: false,
            epoch,
        })
    }

    /// `timeoutSeconds` of the next watch.
    fn seconds(&mut self) -> u64 {
        self.jitter.up_to_double(self.min_timeout).as_secs().max(1)
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

impl OpenWatch {
    /// The next event. `pause` is how long the server may be silent.
    async fn event<T: DeserializeOwned>(
        &mut self,
        pause: Option<Duration>,
    ) -> Result<Event<T>, WatchEnd> {
        loop {
            match self.lines.next(MAX_OBJECT, Event::read) {
                Ok(Some(event)) => return Ok(event),
                Ok(None) => {}
                Err(TooLong) => {
                    let limit = MAX_OBJECT / 1024 / 1024;
                    return Err(WatchEnd::Broken(ApiError::Body(BodyError::TooLarge(limit))));
                }
            }
            let silence = pause.or(self.bookmarks.then_some(BOOKMARK_TIMEOUT));
            let until = match silence {
                Some(silence) => self.until.min(Instant::now() + silence),
                None => self.until,
            };
            let chunk = tokio::select! {
                chunk = timeout_at(until, self.body.chunk()) => chunk,
                changed = self.epoch.changed() => {
                    // The client is held by the feed: its epoch does not go away.
                    let _still_there = changed;
                    return Err(WatchEnd::Normal);
                }
            };
            match chunk {
                Err(_) if until == self.until => return Err(WatchEnd::Normal),
                Err(_) => return Err(WatchEnd::Broken(ApiError::TimedOut)),
                Ok(None) => return Err(WatchEnd::Normal),
                Ok(Some(Err(error))) => {
                    // HTTP/1.1 servers that go away end a watch in the middle of nothing.
                    let error = ApiError::Body(BodyError::Broken(error));
                    return Err(WatchEnd::Broken(error));
                }
                Ok(Some(Ok(piece))) => self.lines.feed(piece),
            }
        }
    }
}
