//! Requests that change a pod, and `why`.

use std::{ops::Deref, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Request, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use rubelet_http_core::{
    field_error::FieldError,
    peer::Peer,
    query::{Query, invalid},
    resource::Resource,
    respond::{self, ApiResult},
    status::ApiError,
};
use serde_json::Value;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::{ActionError, NodeView, PodAction, PodAnswer, PodPatch, PodRef, patch::Patch};

/// Longest body of a request (the API server: 3 MiB).
const LONGEST_BODY: usize = 3 * 1024 * 1024;

/// Bodies longer than this have to wait for a permit.
const SMALL_BODY: u64 = 64 * 1024;

/// Long bodies that are read and acted on at a time, of root and of other users: a document of 3 MiB
/// takes ten times that while it is decoded.
const LONG_BODIES_OF_ROOT: usize = 5;
const LONG_BODIES_OF_OTHERS: usize = 3;

/// Permits for long bodies. Root has a share that other users cannot use.
pub(crate) struct LongBodies {
    root: Semaphore,
    others: Semaphore,
}

impl LongBodies {
    pub(crate) fn new() -> Self {
        Self {
            root: Semaphore::new(LONG_BODIES_OF_ROOT),
            others: Semaphore::new(LONG_BODIES_OF_OTHERS),
        }
    }

    /// The share of a client.
    pub(crate) fn of(&self, peer: Peer) -> &Semaphore {
        match peer.may_add_containers() {
            true => &self.root,
            false => &self.others,
        }
    }
}

/// Timeout for a request body.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// The part of a pod that a PATCH or PUT changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// `/status`.
    Status,
    /// `/ephemeralcontainers`.
    Ephemeral,
}

impl Part {
    fn action(self, patch: PodPatch) -> PodAction {
        match self {
            Self::Status => PodAction::PatchStatus(patch),
            Self::Ephemeral => PodAction::AddEphemeral(patch),
        }
    }
}

/// Answers a PATCH.
pub(crate) async fn patch(
    view: &dyn NodeView,
    pod: PodRef,
    part: Part,
    query: &Query,
    request: Request<Incoming>,
    permits: &Semaphore,
) -> ApiResult {
    for_real(query)?;
    let media_type = media_type(request.headers());
    if !Patch::MEDIA_TYPES.contains(&media_type.as_str()) {
        return Err(ApiError::unsupported_media_type(&Patch::MEDIA_TYPES));
    }
    let body = body(request, permits).await?;
    let patch = PodPatch::read(&media_type, &body).map_err(|error| refusal(error, &pod))?;
    act(view, pod, part.action(patch)).await
}

/// Answers a PUT.
pub(crate) async fn replace(
    view: &dyn NodeView,
    pod: PodRef,
    part: Part,
    query: &Query,
    request: Request<Incoming>,
    permits: &Semaphore,
) -> ApiResult {
    for_real(query)?;
    json_only(request.headers())?;
    let body = body(request, permits).await?;
    let patch = PodPatch::replacement(&body).map_err(|error| refusal(error, &pod))?;
    act(view, pod, part.action(patch)).await
}

/// Answers a DELETE of one pod.
pub(crate) async fn delete(
    view: &dyn NodeView,
    pod: PodRef,
    query: &Query,
    request: Request<Incoming>,
    permits: &Semaphore,
) -> ApiResult {
    for_real(query)?;
    json_only(request.headers())?;
    let body = body(request, permits).await?;
    let mut grace = query.number("gracePeriodSeconds", 0)?;
    if !body.is_empty() {
        let options: Value = serde_json::from_slice(&body)
            .map_err(|error| ApiError::bad_request(format!("the body is not JSON: {error}")))?;
        grace = delete_options(view, &pod, &options)?.or(grace);
    }
    act(view, pod, PodAction::Delete { grace }).await
}

/// Answers a POST to a pod's `restart`.
pub(crate) async fn restart(
    view: &dyn NodeView,
    pod: PodRef,
    query: &Query,
    request: Request<Incoming>,
    permits: &Semaphore,
) -> ApiResult {
    for_real(query)?;
    let body = body(request, permits).await?;
    if !matches!(body.trim_ascii(), b"" | b"{}") {
        return Err(ApiError::bad_request(
            "a restart takes no body; name a container in the query: ?container=NAME",
        ));
    }
    let container = query
        .get("container")
        .filter(|name| !name.is_empty())
        .map(str::to_owned);
    let answer = act_on(view, &pod, PodAction::Restart { container }).await?;
    document(answer, "PodRestart")
}

/// Answers a GET of a pod's `why`.
pub(crate) async fn why(view: &dyn NodeView, pod: PodRef) -> ApiResult {
    let answer = act_on(view, &pod, PodAction::Why).await?;
    document(answer, "PodExplanation")
}

async fn act(view: &dyn NodeView, pod: PodRef, action: PodAction) -> ApiResult {
    document(act_on(view, &pod, action).await?, "Pod")
}

async fn act_on(
    view: &dyn NodeView,
    pod: &PodRef,
    action: PodAction,
) -> Result<PodAnswer, ApiError> {
    view.act(pod, action)
        .await
        .map_err(|error| refusal(error, pod))
}

fn document(answer: PodAnswer, kind: &str) -> ApiResult {
    Ok(respond::json(&match answer {
        PodAnswer::Pod(pod) => pod.to_json(Resource::Pods),
        PodAnswer::Document(mut document) => {
            document["apiVersion"] = Resource::Manifests.api_version().into();
            document["kind"] = kind.into();
            document
        }
    }))
}

fn refusal(error: ActionError, pod: &PodRef) -> ApiError {
    match error {
        ActionError::NotFound => ApiError::not_found(Resource::Pods, &pod.name),
        ActionError::BadRequest(message) => ApiError::bad_request(message),
        ActionError::Conflict(message) => ApiError::conflict(Resource::Pods, &pod.name, message),
        ActionError::Invalid(errors) => ApiError::invalid(Resource::Pods, &pod.name, errors),
        ActionError::Internal(message) => ApiError::internal(message),
    }
}

/// Rejects `dryRun`: no request can be simulated.
fn for_real(query: &Query) -> Result<(), ApiError> {
    match query.get("dryRun").filter(|value| !value.is_empty()) {
        Some(value) => Err(invalid("dryRun", value, "this server has no dry run")),
        None => Ok(()),
    }
}

/// `gracePeriodSeconds` of DeleteOptions, once its other fields are checked.
fn delete_options(
    view: &dyn NodeView,
    pod: &PodRef,
    options: &Value,
) -> Result<Option<u64>, ApiError> {
    let fields = options
        .as_object()
        .ok_or_else(|| ApiError::bad_request("the body must be DeleteOptions"))?;
    let mut grace = None;
    for (field, value) in fields {
        match field.as_str() {
            "apiVersion" => {}
            "kind" if value == "DeleteOptions" => {}
            "gracePeriodSeconds" if value.is_u64() || value.is_null() => grace = value.as_u64(),
            "preconditions" => preconditions(view, pod, value)?,
            // Nothing depends on a pod of this node: all policies have the same effect.
            "propagationPolicy" | "orphanDependents" => {}
            "dryRun" if value.as_array().is_none_or(Vec::is_empty) => {}
            "dryRun" => {
                let error = FieldError::forbidden("dryRun", "this server has no dry run");
                return Err(refusal(error.into(), pod));
            }
            _ => {
                let error = FieldError::invalid(field, value, "is not understood");
                return Err(refusal(error.into(), pod));
            }
        }
    }
    Ok(grace)
}

fn preconditions(view: &dyn NodeView, pod: &PodRef, wanted: &Value) -> Result<(), ApiError> {
    let items = view.list(Resource::Pods).items;
    let object = items
        .iter()
        .find(|object| *object.namespace == *pod.namespace && *object.name == *pod.name)
        .ok_or_else(|| ApiError::not_found(Resource::Pods, &pod.name))?;
    let found = object.to_json(Resource::Pods);
    for (field, name) in [("uid", "UID"), ("resourceVersion", "ResourceVersion")] {
        let (wanted, found) = (&wanted[field], &found["metadata"][field]);
        if !wanted.is_null() && wanted != found {
            let message = format!(
                "Precondition failed: {name} in precondition: {}, {name} in object meta: {}",
                wanted.as_str().unwrap_or_default(),
                found.as_str().unwrap_or_default(),
            );
            return Err(refusal(ActionError::Conflict(message), pod));
        }
    }
    Ok(())
}

/// The media type of a body, without its parameters.
fn media_type(headers: &HeaderMap) -> String {
    let value = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let kind = value.split(';').next().unwrap_or_default();
    kind.trim().to_ascii_lowercase()
}

fn json_only(headers: &HeaderMap) -> Result<(), ApiError> {
    match media_type(headers).as_str() {
        "" | "application/json" | "*/*" => Ok(()),
        _ => Err(ApiError::unsupported_media_type(&["application/json"])),
    }
}

/// A body, and the permit for its length until the request is done.
struct HeldBody<'a> {
    bytes: Bytes,
    _permit: Option<SemaphorePermit<'a>>,
}

impl Deref for HeldBody<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

async fn body(request: Request<Incoming>, permits: &Semaphore) -> Result<HeldBody<'_>, ApiError> {
    let body = request.into_body();
    let is_small = body
        .size_hint()
        .upper()
        .is_some_and(|most| most <= SMALL_BODY);
    let read = async {
        let permit = match is_small {
            true => None,
            false => permits.acquire().await.ok(),
        };
        (Limited::new(body, LONGEST_BODY).collect().await, permit)
    };
    let Ok((body, permit)) = tokio::time::timeout(BODY_TIMEOUT, read).await else {
        return Err(ApiError::bad_request(
            "the body of the request did not come, or too many long ones came at a time",
        ));
    };
    match body {
        Ok(body) => Ok(HeldBody {
            bytes: body.to_bytes(),
            _permit: permit,
        }),
        Err(error) if error.is::<LengthLimitError>() => Err(ApiError::too_large(LONGEST_BODY)),
        Err(error) => Err(ApiError::bad_request(format!(
            "the body of the request was cut off: {error}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_cannot_keep_the_share_of_root_busy() {
        let bodies = LongBodies::new();
        let member = bodies.of(Peer::UNAUTHENTICATED);
        let held: Vec<_> = std::iter::from_fn(|| member.try_acquire().ok()).collect();
        assert_eq!(held.len(), LONG_BODIES_OF_OTHERS);
        assert_eq!(bodies.root.available_permits(), LONG_BODIES_OF_ROOT);
    }
}
