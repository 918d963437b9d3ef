//! Decides which call to make to the API server for one pod. Pure.

use std::sync::Arc;

use jiff::Timestamp;
use rubelet_api::{
    pod::PodSource,
    status::PodStatus,
    wire::{WireContext, pod_status_json},
};
use rubelet_node_state::pod_board::PodEntry;
use serde_json::Value;

use super::{
    StatusContext, merge::merge, merge_context::MergeContext, patch::patch,
    sync_state::PodSyncState, terminated::terminated,
};
use crate::source::ApiPod;

/// The next call for a pod.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum StatusAction {
    /// The API server knows it all.
    Nothing,
    /// Send this patch of the subresource `status`; then the API server has this status.
    Patch { body: Value, status: Arc<str> },
    /// Remove the pod, with its UID as a precondition: nothing of it is left here.
    Delete,
}

/// Compares the node's status of a pod with the copy of the API server, which is the pod itself or,
/// for a static pod, its mirror pod. `version` is that of the entry on the board.
pub(super) fn decide(
    entry: &PodEntry,
    version: u64,
    copy: &ApiPod,
    known: &PodSyncState,
    context: &StatusContext,
    now: Timestamp,
) -> StatusAction {
    if known.is_done_with(copy) || is_unnamed(&entry.status, context) {
        return StatusAction::Nothing;
    }
    if !known.is_own_update(copy, version) {
        let newest = known.newest(copy);
        if let Some(step) = changed(entry, copy, &newest, context, now) {
            return step;
        }
    }
    if may_be_deleted(entry, copy) {
        return StatusAction::Delete;
    }
    StatusAction::Nothing
}

fn changed(
    entry: &PodEntry,
    copy: &ApiPod,
    newest: &str,
    context: &StatusContext,
    now: Timestamp,
) -> Option<StatusAction> {
    let pod = &entry.pod;
    let mut status = std::borrow::Cow::Borrowed(&entry.status);
    if entry.finished {
        status = std::borrow::Cow::Owned(terminated(pod, &entry.status));
    }
    let wire = WireContext {
        host_ips: &context.host_ips,
        runtime: &context.runtime,
        ..WireContext::default()
    };
    let ours = pod_status_json(pod, &status, &wire);
    let theirs: Value = serde_json::from_str(newest).unwrap_or_default();
    let facts = MergeContext {
        spec: &pod.spec,
        mirror: copy.mirror.is_some(),
        running: !entry.finished && has_running(&status),
        now,
    };
    let merged = merge(&ours, &theirs, &facts);
    let body = patch(copy.uid.as_str(), &theirs, &merged)?;
    let status = merged.to_string().into();
    Some(StatusAction::Patch { body, status })
}

fn has_running(status: &PodStatus) -> bool {
    status.running_containers().next().is_some()
}

/// Until the runtime has reported its name, identifiers of containers can't be written as they were
/// written before.
fn is_unnamed(status: &PodStatus, context: &StatusContext) -> bool {
    let mut all = status.all_containers();
    context.runtime.is_empty() && all.any(|one| !one.container_id.is_empty())
}

/// A pod may be deleted when that was requested, nothing of it is left on the node, and all
/// watchers know how it ended: the terminal phase came back with the watch.
fn may_be_deleted(entry: &PodEntry, copy: &ApiPod) -> bool {
    let told = copy.phase.is_some_and(|phase| phase.is_terminal());
    let ours = copy.mirror.is_none() && entry.pod.source == PodSource::Api;
    entry.finished && copy.deletion.is_some() && told && ours
}
