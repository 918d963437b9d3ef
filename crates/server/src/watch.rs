//! Watches: one JSON document per line, until the client disconnects.
//!
//! The watch is the body of its response. It is polled only when the connection can send, and its
//! source has no queue for it, so a client that stops reading costs one line and a position.

use std::{collections::HashSet, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use rubelet_http_core::{
    clock,
    query::{Query, invalid},
    resource::Resource,
    respond::{self, ApiResult},
    shutdown::Shutdown,
    status::ApiError,
};
use serde_json::{Value, json};
use tokio::time::Sleep;

use crate::{
    Expired, NodeView, Object, WatchEvent, WatchKind, WatchStream, list::Style, selector::Selection,
};

/// Answers with a stream of changes.
pub(crate) fn watch(
    view: &dyn NodeView,
    style: Style,
    selection: Selection,
    query: &Query,
    shutdown: Shutdown,
) -> ApiResult {
    let bookmarks = query.flag("allowWatchBookmarks")?;
    let initial_events = query.flag("sendInitialEvents")?;
    let timeout = query
        .number("timeoutSeconds", 0)?
        .filter(|seconds| *seconds > 0);
    let since = match query.number("resourceVersion", 0)? {
        None | Some(0) => None,
        Some(_) if initial_events => None,
        since => since,
    };
    if initial_events && query.get("resourceVersionMatch") != Some("NotOlderThan") {
        let value = query.get("resourceVersionMatch").unwrap_or_default();
        let rule = "must be NotOlderThan when sendInitialEvents is true";
        return Err(invalid("resourceVersionMatch", value, rule));
    }
    let listing = view.list(style.resource);
    let position = since.unwrap_or(listing.resource_version);
    let events = view
        .watch(style.resource, position)
        .map_err(too_old(position))?;
    let members = Members::new(&selection, since, &listing.items);
    let initial = if since.is_none() {
        listing.items
    } else {
        Vec::new()
    };
    let watch = Watch {
        style,
        selection,
        members,
        initial: initial.into_iter(),
        mark_end_of_initial: initial_events,
        events,
        position,
        bookmarks,
        deadline: timeout.map(|s| Box::pin(tokio::time::sleep(Duration::from_secs(s)))),
        shutdown,
        wrote_columns: false,
        done: false,
    };
    Ok(respond::json_pieces(stream::unfold(
        watch,
        |mut watch| async move {
            let line = watch.next().await?;
            Some((Ok(line), watch))
        },
    )))
}

fn too_old(position: u64) -> impl Fn(Expired) -> ApiError {
    move |expired| ApiError::expired(format!("{expired}: {position}; list again"))
}

struct Watch {
    style: Style,
    selection: Selection,
    members: Option<Members>,
    initial: std::vec::IntoIter<Object>,
    mark_end_of_initial: bool,
    events: WatchStream,
    position: u64,
    bookmarks: bool,
    deadline: Option<Pin<Box<Sleep>>>,
    shutdown: Shutdown,
    wrote_columns: bool,
    done: bool,
}

impl Watch {
    async fn next(&mut self) -> Option<Bytes> {
        while !self.done {
            if let Some(object) = self.initial.next() {
                if let Some(json) = self.selection.admit(&object) {
                    return Some(self.change(WatchKind::Added, json));
                }
                continue;
            }
            if std::mem::take(&mut self.mark_end_of_initial) {
                return Some(line("BOOKMARK", &self.style.bookmark(self.position, true)));
            }
            // Cancel safe: a stream keeps its position, a sleep its deadline.
            let event = tokio::select! {
                biased;
                () = self.shutdown.requested() => None,
                () = expiry(&mut self.deadline) => None,
                event = self.events.next() => event,
            };
            match event {
                Some(Ok(event)) => {
                    self.position = event.object.resource_version;
                    if let Some((kind, json)) = self.filter(&event) {
                        return Some(self.change(kind, json));
                    }
                }
                Some(Err(expired)) => {
                    self.done = true;
                    return Some(line("ERROR", &too_old(self.position)(expired).to_json()));
                }
                None => {
                    self.done = true;
                    if self.bookmarks {
                        return Some(line("BOOKMARK", &self.style.bookmark(self.position, false)));
                    }
                }
            }
        }
        None
    }

    fn change(&mut self, kind: WatchKind, object: Value) -> Bytes {
        let with_columns = !std::mem::replace(&mut self.wrote_columns, true);
        line(
            kind.as_str(),
            &self.style.single(object, clock::now(), with_columns),
        )
    }

    /// The event that the client gets for a change, given its selection.
    fn filter(&mut self, event: &WatchEvent) -> Option<(WatchKind, Value)> {
        let admitted = self.selection.admit(&event.object);
        match &mut self.members {
            None => admitted.map(|json| (event.kind, json)),
            Some(members) => members.filter(event, admitted, self.selection.resource),
        }
    }
}

async fn expiry(deadline: &mut Option<Pin<Box<Sleep>>>) {
    match deadline {
        Some(sleep) => sleep.as_mut().await,
        None => std::future::pending().await,
    }
}

fn line(kind: &str, object: &Value) -> Bytes {
    let mut line = json!({ "type": kind, "object": object }).to_string();
    line.push('\n');
    line.into()
}

/// The objects that the client believes to be in its selection, if changes can move them.
///
/// An object that changed between the client's list and the start of the watch may or may not have
/// been in that list; such a change is reported once too often rather than once too little.
struct Members {
    known: HashSet<Key>,
    unsure: HashSet<Key>,
}

type Key = (Arc<str>, Arc<str>);

fn key(object: &Object) -> Key {
    (Arc::clone(&object.namespace), Arc::clone(&object.name))
}

impl Members {
    /// `None` if the selection does not depend on contents.
    fn new(selection: &Selection, since: Option<u64>, now: &[Object]) -> Option<Self> {
        if !selection.is_by_content() {
            return None;
        }
        let since = since.unwrap_or(u64::MAX);
        let (old, new): (Vec<&Object>, Vec<&Object>) = now
            .iter()
            .filter(|object| selection.names(object))
            .partition(|object| object.resource_version <= since);
        let known = old
            .into_iter()
            .filter(|object| selection.admits(object))
            .map(key)
            .collect();
        Some(Self {
            known,
            unsure: new.into_iter().map(key).collect(),
        })
    }

    fn filter(
        &mut self,
        event: &WatchEvent,
        admitted: Option<Value>,
        resource: Resource,
    ) -> Option<(WatchKind, Value)> {
        let key = key(&event.object);
        let unsure = self.unsure.remove(&key);
        let known = self.known.remove(&key);
        match (event.kind, admitted) {
            (WatchKind::Deleted, Some(json)) => Some((WatchKind::Deleted, json)),
            (WatchKind::Deleted, None) => {
                (known || unsure).then(|| (WatchKind::Deleted, event.object.to_json(resource)))
            }
            (_, Some(json)) => {
                self.known.insert(key);
                let seen = known || (unsure && event.kind == WatchKind::Modified);
                let kind = if seen {
                    WatchKind::Modified
                } else {
                    WatchKind::Added
                };
                Some((kind, json))
            }
            (WatchKind::Added, None) => None,
            (WatchKind::Modified, None) => {
                (known || unsure).then(|| (WatchKind::Deleted, event.object.to_json(resource)))
            }
        }
    }
}
