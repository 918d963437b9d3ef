//! Watches: changes after a version, as lines of JSON or protobuf frames.
//!
//! A watch only has a position in the history, which the connection advances that sends its events.

use std::{borrow::Cow, collections::VecDeque, sync::Arc, time::Duration};

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::{sync::watch, time::Instant};

use crate::{
    Kind, StatusError, event_conversion,
    negotiation::ResponseFormat,
    protobuf,
    request::Request,
    selection::Selection,
    state::ServerState,
    status_error::FieldError,
    store::{Change, Compacted},
    table,
};

/// A watch without a timeout ends after a time between this and twice this.
const MIN_TIMEOUT: Duration = Duration::from_secs(1800);

/// Parameters of a watch.
#[derive(Debug)]
pub(crate) struct Watch {
    kind: &'static Kind,
    selection: Selection,
    position: u64,
    /// Events to send first.
    ready: VecDeque<Bytes>,
    bookmarks: Option<Duration>,
    timeout: Duration,
    /// The first event is an error; the watch ends after it.
    failed: bool,
    format: ResponseFormat,
}

impl Watch {
    pub(super) fn new(
        shared: &ServerState,
        request: &Request,
        selection: Selection,
    ) -> Result<Self, StatusError> {
        let (kind, query) = (request.kind(), &request.query);
        let config = shared.config();
        let with_list = query.flag("sendInitialEvents")?;
        check_options(kind, request, config.streaming_lists)?;
        let since = query.number("resourceVersion")?.unwrap_or(0);
        let timeout = match query.number("timeoutSeconds")? {
            None | Some(0) => shared.dice().between(MIN_TIMEOUT, 2 * MIN_TIMEOUT),
            Some(seconds) => Duration::from_secs(seconds),
        };
        let mut watch = Self {
            kind,
            selection,
            position: since,
            ready: VecDeque::new(),
            bookmarks: query
                .flag("allowWatchBookmarks")?
                .then_some(config.bookmark_every),
            timeout,
            failed: false,
            format: request.format,
        };
        shared.with_store(|store| {
            let now = store.version();
            if since > now {
                return Err(StatusError::too_new(since, now));
            }
            if with_list || since == 0 {
                watch.position = now;
                // A client that disables it wants only later changes.
                let is_silent = query.get("sendInitialEvents").is_some() && !with_list;
                let objects = if is_silent {
                    Vec::new()
                } else {
                    store.list(kind.storage, None)
                };
                for object in objects {
                    if watch.selection.matches(&object) {
                        let line = watch.line("ADDED", &object, shared.clock.now());
                        watch.ready.push_back(line);
                    }
                }
                if with_list && watch.bookmarks.is_some() {
                    let line = watch.bookmark(true);
                    watch.ready.push_back(line);
                }
            } else if let Err(gone) = store.since(since).map(drop) {
                watch.fail(gone);
            }
            Ok(())
        })?;
        Ok(watch)
    }

    /// Starts the watch.
    pub(crate) fn begin(self, shared: &Arc<ServerState>) -> Watching {
        let now = Instant::now();
        Watching {
            shared: Arc::clone(shared),
            changes: shared.changes(),
            deadline: now + self.timeout,
            next_bookmark: self.bookmarks.map(|every| now + every),
            stalls: None,
            watch: self,
        }
    }

    /// Format of its events.
    pub(crate) fn format(&self) -> ResponseFormat {
        self.format
    }

    /// Makes it fail, as if its version had been compacted.
    pub(crate) fn expire(&mut self) {
        self.fail(Compacted {
            oldest: self.position + 1,
        });
    }

    fn fail(&mut self, gone: Compacted) {
        let message = format!(
            "too old resource version: {} ({})",
            self.position, gone.oldest
        );
        let status = StatusError::expired(message).to_json();
        self.ready.clear();
        let event = self.event("ERROR", &status);
        self.ready.push_back(event);
        self.failed = true;
    }

    /// The event for an object.
    fn line(&self, what: &str, object: &Value, now: Timestamp) -> Bytes {
        let shown = match self.format {
            ResponseFormat::Object | ResponseFormat::Protobuf => {
                event_conversion::from_storage_cow(self.kind, object)
            }
            ResponseFormat::Table(include) => {
                let version = &object["metadata"]["resourceVersion"];
                let metadata = json!({ "resourceVersion": version });
                Cow::Owned(table::table(self.kind, &[object], &metadata, include, now))
            }
        };
        self.event(what, &shown)
    }

    /// An encoded event: a line of JSON, or a protobuf frame.
    fn event(&self, what: &str, object: &Value) -> Bytes {
        let frame = match self.format {
            ResponseFormat::Protobuf => protobuf::frame(what, object),
            _ => None,
        };
        match frame {
            Some(frame) => frame.into(),
            None => format!("{{\"type\":\"{what}\",\"object\":{object}}}\n").into(),
        }
    }

    fn bookmark(&self, ends_initial: bool) -> Bytes {
        let mut metadata = json!({ "resourceVersion": self.position.to_string() });
        if ends_initial {
            metadata["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        let object = json!({
            "kind": self.kind.kind,
            "apiVersion": self.kind.api_version(),
            "metadata": metadata,
        });
        self.event("BOOKMARK", &object)
    }

    /// The event of a change for this watch: objects can enter and leave the selection.
    fn event_for(&self, change: &Change, now: Timestamp) -> Option<Bytes> {
        if change.storage != self.kind.storage {
            return None;
        }
        let old = change.old.as_deref();
        let was_in = old.is_some_and(|old| self.selection.matches(old));
        let is_in = !change.removed && self.selection.matches(&change.new);
        match (was_in, is_in) {
            (false, false) => None,
            (false, true) => Some(self.line("ADDED", &change.new, now)),
            (true, true) => Some(self.line("MODIFIED", &change.new, now)),
            (true, false) if change.removed => Some(self.line("DELETED", &change.new, now)),
            (true, false) => {
                // The client receives the state that it knew, with the version of the change.
                let mut last = Value::clone(old?);
                last["metadata"]["resourceVersion"] = change.version.to_string().into();
                Some(self.line("DELETED", &last, now))
            }
        }
    }
}

fn check_options(kind: &Kind, request: &Request, streaming: bool) -> Result<(), StatusError> {
    let query = &request.query;
    let has_match = !query.text("resourceVersionMatch").is_empty();
    let forbidden = |field: &str, message: &str| {
        let cause = FieldError::forbidden(field, message);
        Err(StatusError::invalid(kind, "", vec![cause]))
    };
    let asked = query.get("sendInitialEvents").is_some();
    if asked && !streaming {
        let message = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is \
                       enabled";
        return forbidden("sendInitialEvents", message);
    }
    if query.flag("sendInitialEvents")? && query.text("resourceVersionMatch") != "NotOlderThan" {
        let message = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        return forbidden("resourceVersionMatch", message);
    }
    if has_match && !asked {
        let message = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is \
                       provided";
        return forbidden("resourceVersionMatch", message);
    }
    Ok(())
}

/// An open watch.
pub(crate) struct Watching {
    shared: Arc<ServerState>,
    changes: watch::Receiver<u64>,
    deadline: Instant,
    next_bookmark: Option<Instant>,
    /// From this time on nothing is sent, and the watch does not end.
    stalls: Option<Instant>,
    watch: Watch,
}

impl Watching {
    /// Ends it after this time.
    pub(crate) fn end_after(&mut self, after: Duration) {
        self.deadline = self.deadline.min(Instant::now() + after);
    }

    /// Sends nothing after this time.
    pub(crate) fn stall_after(&mut self, after: Duration) {
        self.stalls = Some(Instant::now() + after);
    }

    /// The next events; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        loop {
            let now = Instant::now();
            if self.stalls.is_some_and(|stalls| stalls <= now) {
                std::future::pending::<()>().await;
            }
            if let Some(line) = self.watch.ready.pop_front() {
                return Some(line);
            }
            if self.watch.failed || self.deadline <= now {
                return None;
            }
            self.changes.mark_unchanged();
            self.read_on();
            if !self.watch.ready.is_empty() {
                continue;
            }
            if self.next_bookmark.is_some_and(|at| at <= now) {
                self.next_bookmark = self.watch.bookmarks.map(|every| now + every);
                return Some(self.watch.bookmark(false));
            }
            let until = [Some(self.deadline), self.next_bookmark, self.stalls];
            let until = until.into_iter().flatten().min().unwrap_or(self.deadline);
            // Cancel safety: the position is stored in `watch`.
            tokio::select! {
                () = tokio::time::sleep_until(until) => {}
                changed = self.changes.changed() => if changed.is_err() {
                    return None;
                },
            }
        }
    }

    /// Reads the changes since the position.
    fn read_on(&mut self) {
        let shared = Arc::clone(&self.shared);
        shared.with_store(|store| {
            let now = store.version();
            let changes = match store.since(self.watch.position) {
                Ok(changes) => changes,
                Err(gone) => return self.watch.fail(gone),
            };
            let lines: Vec<Bytes> = changes
                .filter_map(|change| self.watch.event_for(change, shared.clock.now()))
                .collect();
            self.watch.ready.extend(lines);
            self.watch.position = now;
        });
    }
}
