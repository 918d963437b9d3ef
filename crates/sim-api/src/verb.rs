//! Execution of each verb, under the store's lock and without waiting.

mod change;
mod create;
mod delete;
mod list;
mod patch;
mod update;
mod watch;

use serde_json::Value;

use crate::{
    StatusError, event_conversion,
    request::{Request, Verb},
    selection::Selection,
    state::ServerState,
};

pub(crate) use self::{
    delete::{DeleteOptions, delete_object},
    watch::Watch,
};

/// Result of a request.
pub(crate) enum Reply {
    /// An object or a list, and whether it was created by the request.
    Object { value: Value, created: bool },
    /// A stream of changes.
    Watch(Box<Watch>),
}

impl Reply {
    pub(crate) fn ok(value: Value) -> Self {
        Self::Object {
            value,
            created: false,
        }
    }

    pub(crate) fn created(value: Value) -> Self {
        Self::Object {
            value,
            created: true,
        }
    }
}

/// Executes a request; streaming subresources are handled elsewhere.
pub(crate) fn answer(shared: &ServerState, request: &Request) -> Result<Reply, StatusError> {
    let kind = request.kind();
    if kind.is_review && request.verb != Verb::Create {
        return Err(StatusError::method_not_allowed());
    }
    match request.verb {
        Verb::Get => get(shared, request),
        Verb::List => list::list(shared, request).map(Reply::ok),
        Verb::Watch => {
            let selection = Selection::read(&request.target, &request.query)?;
            Watch::new(shared, request, selection).map(|watch| Reply::Watch(Box::new(watch)))
        }
        Verb::Create => create::create(shared, request).map(Reply::created),
        Verb::Update => update::update(shared, request),
        Verb::Patch => patch::patch(shared, request),
        Verb::Delete => delete::delete(shared, request).map(Reply::ok),
        Verb::DeleteCollection => delete::delete_collection(shared, request).map(Reply::ok),
    }
}

fn get(shared: &ServerState, request: &Request) -> Result<Reply, StatusError> {
    let target = &request.target;
    if !["", "status", "approval", "ephemeralcontainers"].contains(&target.subresource()) {
        return Err(StatusError::method_not_allowed());
    }
    let found = shared.with_store(|store| {
        store
            .get(target.kind.storage, target.namespace(), target.name())
            .cloned()
    });
    let object = found.ok_or_else(|| StatusError::not_found(target.kind, target.name()))?;
    Ok(Reply::ok(event_conversion::from_storage(
        target.kind,
        &object,
    )))
}
