//! Deletion: graceful for pods, immediate for all other kinds.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::{
    Kind, StatusError, clock, event_conversion, meta, request::Request, selection::Selection,
    state::ServerState, store::Store, strategy, user::User,
};

/// Options of a deletion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DeleteOptions {
    /// Grace period of a pod, in seconds.
    pub(crate) grace: Option<i64>,
    /// Only the object with this UID.
    pub(crate) uid: Option<String>,
    /// Only at this resource version.
    pub(crate) version: Option<String>,
    pub(crate) dry_run: bool,
}

impl DeleteOptions {
    fn read(request: &Request) -> Result<Self, StatusError> {
        let mut options = Self {
            grace: request
                .query
                .number("gracePeriodSeconds")?
                .and_then(|seconds| i64::try_from(seconds).ok()),
            dry_run: request.is_dry_run(),
            ..Self::default()
        };
        if !request.body.is_empty() {
            options.take(&request.object("", "DeleteOptions")?);
        }
        Ok(options)
    }

    /// Adds the options of a DeleteOptions object.
    pub(crate) fn take(&mut self, body: &Value) {
        self.grace = meta::number(body, "/gracePeriodSeconds").or(self.grace);
        let text = |place| Some(meta::text(body, place).to_owned()).filter(|text| !text.is_empty());
        self.uid = text("/preconditions/uid");
        self.version = text("/preconditions/resourceVersion");
        self.dry_run |= !meta::entries(body, "/dryRun").is_empty();
    }
}

pub(super) fn delete(shared: &ServerState, request: &Request) -> Result<Value, StatusError> {
    let target = &request.target;
    if target.subresource.is_some() {
        return Err(StatusError::method_not_allowed());
    }
    let options = DeleteOptions::read(request)?;
    shared.with_store(|store| {
        let place = (target.kind, target.namespace(), target.name());
        delete_object(shared, store, &request.user, place, &options)
    })
}

pub(super) fn delete_collection(
    shared: &ServerState,
    request: &Request,
) -> Result<Value, StatusError> {
    let (kind, options) = (request.kind(), DeleteOptions::read(request)?);
    let selection = Selection::read(&request.target, &request.query)?;
    shared.with_store(|store| {
        let objects = store.list(kind.storage, request.target.namespace.as_deref());
        let mut items = Vec::new();
        for object in objects.iter().filter(|object| selection.matches(object)) {
            let place = (kind, meta::namespace(object), meta::name(object));
            delete_object(shared, store, &request.user, place, &options)?;
            items.push(event_conversion::from_storage(kind, object));
        }
        Ok(json!({
            "kind": format!("{}List", kind.kind),
            "apiVersion": kind.api_version(),
            "metadata": { "resourceVersion": store.version().to_string() },
            "items": items,
        }))
    })
}

/// Deletes one object, given by kind, namespace and name, or starts its graceful deletion.
pub(crate) fn delete_object(
    shared: &ServerState,
    store: &mut Store,
    user: &User,
    (kind, namespace, name): (&'static Kind, &str, &str),
    options: &DeleteOptions,
) -> Result<Value, StatusError> {
    let old = store.get(kind.storage, namespace, name).cloned();
    let old = old.ok_or_else(|| StatusError::not_found(kind, name))?;
    if shared.config().node_restriction {
        let known = if kind.is("pods") && user.node_name().is_some() {
            let known = shared.pod_for_admission(store, namespace, name);
            known.ok_or_else(|| StatusError::not_found(kind, name))?
        } else {
            Arc::clone(&old)
        };
        strategy::check_node_may_delete(kind, &known, user)?;
    }
    check_preconditions(kind, &old, options)?;
    if options.dry_run {
        return Ok(event_conversion::from_storage(kind, &old));
    }
    let now = shared.clock.now();
    let wait = if kind.is("pods") {
        grace(&old, options, now)
    } else {
        Wait::Over
    };
    let mut object = Value::clone(&old);
    match wait {
        Wait::Unchanged => return Ok(event_conversion::from_storage(kind, &old)),
        Wait::Until { at, seconds } => {
            let first = !meta::is_deleting(&old);
            let metadata = meta::fields(&mut object, "metadata");
            metadata.insert("deletionTimestamp".to_owned(), clock::seconds(at).into());
            metadata.insert("deletionGracePeriodSeconds".to_owned(), seconds.into());
            if first {
                strategy::next_generation(&mut object);
            }
            if seconds > 0 {
                return Ok(event_conversion::from_storage(
                    kind,
                    &store.put(kind.storage, object),
                ));
            }
        }
        Wait::Over => {}
    }
    if kind.is("pods") {
        check_removal(shared, user, &old);
    }
    let has_finalizers = !meta::entries(&object, "/metadata/finalizers").is_empty();
    if has_finalizers || kind.is("namespaces") {
        let metadata = meta::fields(&mut object, "metadata");
        metadata
            .entry("deletionTimestamp")
            .or_insert_with(|| clock::seconds(now).into());
        metadata.insert("deletionGracePeriodSeconds".to_owned(), 0.into());
        if kind.is("namespaces") {
            object["status"]["phase"] = "Terminating".into();
        }
        let kept = store.put(kind.storage, object);
        if kind.is("namespaces") {
            empty(shared, store, user, name)?;
        }
        return Ok(event_conversion::from_storage(kind, &kept));
    }
    let last = store.remove(kind.storage, namespace, name);
    strategy::after_delete(kind, &old, store);
    if kind.is("pods") {
        let last = last.as_deref().unwrap_or(&old);
        return Ok(event_conversion::from_storage(kind, last));
    }
    Ok(json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {
            "name": name, "group": kind.group, "kind": kind.plural, "uid": meta::uid(&old),
        },
    }))
}

fn check_preconditions(
    kind: &Kind,
    object: &Value,
    options: &DeleteOptions,
) -> Result<(), StatusError> {
    let name = meta::name(object);
    if let Some(uid) = options
        .uid
        .as_deref()
        .filter(|uid| *uid != meta::uid(object))
    {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object \
             might have been deleted and then recreated",
            meta::uid(object)
        );
        return Err(StatusError::conflict(kind, name, &why));
    }
    let current = meta::text(object, "/metadata/resourceVersion");
    if let Some(version) = options
        .version
        .as_deref()
        .filter(|wanted| *wanted != current)
    {
        let why = format!(
            "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion \
             in record ({current}). The object might have been modified"
        );
        return Err(StatusError::conflict(kind, name, &why));
    }
    Ok(())
}

enum Wait {
    /// The object does not change.
    Unchanged,
    /// It is marked for deletion, and removed immediately if the grace period is zero.
    Until { at: Timestamp, seconds: i64 },
    /// Its grace period was zero already.
    Over,
}

/// The grace period of a pod. A second request can only shorten it.
fn grace(pod: &Value, options: &DeleteOptions, now: Timestamp) -> Wait {
    let wanted = options.grace.map(|grace| if grace < 0 { 1 } else { grace });
    let after = |start: Timestamp, seconds| start + SignedDuration::from_secs(seconds);
    if meta::is_deleting(pod) {
        let before = meta::number(pod, "/metadata/deletionGracePeriodSeconds").unwrap_or(0);
        if before == 0 {
            return Wait::Over;
        }
        let Some(seconds) = wanted.filter(|wanted| *wanted < before) else {
            return Wait::Unchanged;
        };
        let end: Option<Timestamp> = meta::text(pod, "/metadata/deletionTimestamp").parse().ok();
        let at = after(end.unwrap_or(now), seconds - before);
        if at < now {
            let seconds = seconds.min(1);
            return Wait::Until { at: now, seconds };
        }
        return Wait::Until { at, seconds };
    }
    let own = meta::number(pod, "/spec/terminationGracePeriodSeconds").unwrap_or(0);
    let is_bound = !meta::text(pod, "/spec/nodeName").is_empty();
    let has_ended = ["Succeeded", "Failed"].contains(&meta::text(pod, "/status/phase"));
    let seconds = if is_bound && !has_ended {
        wanted.unwrap_or(own)
    } else {
        0
    };
    let seconds = if seconds < 0 { 1 } else { seconds };
    Wait::Until {
        at: after(now, seconds),
        seconds,
    }
}

/// Checks that a node removes a pod only after all its containers have terminated.
fn check_removal(shared: &ServerState, user: &User, pod: &Value) {
    if user.node_name().is_none() {
        return;
    }
    let mut oracle = shared.oracle();
    let at = shared.clock.elapsed();
    let is_mirror = pod
        .pointer("/metadata/annotations/kubernetes.io~1config.mirror")
        .is_some();
    let lists = ["/status/initContainerStatuses", "/status/containerStatuses"];
    let mut statuses = lists.iter().flat_map(|list| meta::entries(pod, list));
    let running = statuses.find(|status| status.pointer("/state/running").is_some());
    if let Some(status) = running.filter(|_| !is_mirror) {
        let name = meta::text(status, "/name");
        oracle.violated(at, pod, format!("removed while container {name} ran"));
    }
    if !is_mirror && !meta::is_deleting(pod) {
        oracle.violated(
            at,
            pod,
            "removed by its node without a deletion request".to_owned(),
        );
    }
    if let Some(what) = oracle.delete_hook.clone().and_then(|hook| hook(pod)) {
        oracle.violated(at, pod, what);
    }
}

/// Deletes the objects in a namespace, then the namespace if it is empty.
fn empty(
    shared: &ServerState,
    store: &mut Store,
    user: &User,
    namespace: &str,
) -> Result<(), StatusError> {
    let kinds = crate::KINDS.iter();
    let kinds = kinds.filter(|kind| kind.namespaced && kind.group != "events.k8s.io");
    for kind in kinds {
        for object in store.list(kind.storage, Some(namespace)) {
            let place = (kind, namespace, meta::name(&object));
            delete_object(shared, store, user, place, &DeleteOptions::default())?;
        }
    }
    if store.is_namespace_empty(namespace) {
        store.remove("namespaces", "", namespace);
    }
    Ok(())
}
