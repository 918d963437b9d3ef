//! Lists and single objects, rendered while they are sent.

use std::io;

use bytes::Bytes;
use futures_util::stream;
use jiff::Timestamp;
use rubelet_http_core::{
    clock,
    query::{Query, invalid},
    resource::Resource,
    respond::{self, ApiResult},
    status::ApiError,
};
use serde_json::{Value, json};

use crate::{NodeView, Object, accept::Form, selector::Selection, table};

/// A response is sent in chunks of about this size.
const PIECE: usize = 16 * 1024;

/// Representation of objects: as they are, or as table rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    pub(crate) resource: Resource,
    form: Form,
    include: Include,
}

/// `includeObject` of a Table request: what comes with the cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Include {
    None,
    Metadata,
    Object,
}

impl Style {
    pub(crate) fn new(resource: Resource, form: Form, query: &Query) -> Result<Self, ApiError> {
        let include = match query.get("includeObject") {
            None | Some("" | "Metadata") => Include::Metadata,
            Some("None") => Include::None,
            Some("Object") => Include::Object,
            Some(other) => {
                return Err(invalid(
                    "includeObject",
                    other,
                    "must be None, Metadata or Object",
                ));
            }
        };
        Ok(Self {
            resource,
            form,
            include,
        })
    }

    /// The text before the items of a list, and the text after them.
    fn frame(self, version: u64) -> (String, &'static str) {
        let version = version.to_string();
        let mut head = match self.form {
            Form::Object => json!({
                "kind": format!("{}List", self.resource.kind()),
                "apiVersion": self.resource.api_version(),
                "metadata": { "resourceVersion": version },
            })
            .to_string(),
            Form::Table => table_of(&version, self.resource, &[], true).to_string(),
        };
        match self.form {
            Form::Object => {
                head.pop();
                head.push_str(",\"items\":[");
                (head, "]}\n")
            }
            Form::Table => {
                // "rows" sorts last among a Table's keys: its empty list is filled in from there.
                head.truncate(head.len() - "]}".len());
                (head, "]}\n")
            }
        }
    }

    /// One entry of a list.
    fn item(self, object: Value, now: Timestamp) -> Value {
        match self.form {
            Form::Object => object,
            Form::Table => self.row(object, now),
        }
    }

    /// One object on its own: in a watch, or as the response to a GET by name.
    pub(crate) fn single(self, object: Value, now: Timestamp, with_columns: bool) -> Value {
        match self.form {
            Form::Object => object,
            Form::Table => {
                let version = object["metadata"]["resourceVersion"].clone();
                let version = version.as_str().unwrap_or_default();
                table_of(
                    version,
                    self.resource,
                    &[self.row(object, now)],
                    with_columns,
                )
            }
        }
    }

    /// An object that only reports how far a watch has come.
    pub(crate) fn bookmark(self, version: u64, end_of_initial: bool) -> Value {
        let version = version.to_string();
        let mut bookmark = match self.form {
            Form::Object => json!({
                "kind": self.resource.kind(),
                "apiVersion": self.resource.api_version(),
                "metadata": { "resourceVersion": version },
            }),
            Form::Table => table_of(&version, self.resource, &[], false),
        };
        if end_of_initial {
            bookmark["metadata"]["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        bookmark
    }

    fn row(self, object: Value, now: Timestamp) -> Value {
        let cells = table::cells(self.resource, &object, now);
        let beside = match self.include {
            Include::None => Value::Null,
            Include::Object => object,
            Include::Metadata => json!({
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": object["metadata"],
            }),
        };
        json!({ "cells": cells, "object": beside })
    }
}

fn table_of(version: &str, resource: Resource, rows: &[Value], with_columns: bool) -> Value {
    let columns = if with_columns {
        table::definitions(resource)
    } else {
        json!([])
    };
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": { "resourceVersion": version },
        "columnDefinitions": columns,
        "rows": rows,
    })
}

/// Answers with one object.
pub(crate) fn get(
    view: &dyn NodeView,
    style: Style,
    selection: &Selection,
    name: &str,
) -> ApiResult {
    let items = view.list(style.resource).items;
    let object = items.iter().find_map(|object| selection.admit(object));
    let object = object.ok_or_else(|| ApiError::not_found(style.resource, name))?;
    Ok(respond::json(&style.single(object, clock::now(), true)))
}

/// Answers with all objects of a selection. `limit` is ignored: the list is always complete, and
/// never has a `continue`.
pub(crate) fn list(
    view: &dyn NodeView,
    style: Style,
    selection: Selection,
    query: &Query,
) -> ApiResult {
    let listing = view.list(style.resource);
    check_versions(query, listing.resource_version)?;
    let (head, tail) = style.frame(listing.resource_version);
    let writer = Writer {
        style,
        selection,
        items: listing.items.into_iter(),
        tail: Some(tail),
    };
    let pieces = writer.pieces(head, clock::now());
    Ok(respond::json_pieces(stream::iter(
        pieces.map(Ok::<_, io::Error>),
    )))
}

/// Only the present state can be listed.
fn check_versions(query: &Query, newest: u64) -> Result<(), ApiError> {
    if query.get("continue").is_some_and(|token| !token.is_empty()) {
        return Err(ApiError::bad_request(
            "continue: this server sends complete lists only",
        ));
    }
    let exact = query.get("resourceVersionMatch") == Some("Exact");
    match query.number("resourceVersion", 0)? {
        None | Some(0) => Ok(()),
        Some(version) if version > newest || (exact && version != newest) => {
            Err(ApiError::expired(format!(
                "resource version {version} is not available; the current one is {newest}"
            )))
        }
        Some(_) => Ok(()),
    }
}

struct Writer {
    style: Style,
    selection: Selection,
    items: std::vec::IntoIter<Object>,
    /// Taken once everything is written.
    tail: Option<&'static str>,
}

impl Writer {
    fn pieces(mut self, head: String, now: Timestamp) -> impl Iterator<Item = Bytes> + Send {
        let mut piece = head.into_bytes();
        let mut first = true;
        std::iter::from_fn(move || {
            let tail = self.tail?;
            for object in self.items.by_ref() {
                let Some(json) = self.selection.admit(&object) else {
                    continue;
                };
                if !first {
                    piece.push(b',');
                }
                first = false;
                piece.extend_from_slice(self.style.item(json, now).to_string().as_bytes());
                if piece.len() >= PIECE {
                    return Some(Bytes::from(std::mem::take(&mut piece)));
                }
            }
            self.tail = None;
            piece.extend_from_slice(tail.as_bytes());
            Some(Bytes::from(std::mem::take(&mut piece)))
        })
    }
}
