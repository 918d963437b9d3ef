//! Files of containers: `GET` and `PUT /api/v1/namespaces/{ns}/pods/{name}/files?container=&path=`,
//! tar streams of the files at the path. Kubernetes has no such path; kubectl runs `tar` in the
//! container.

mod request;

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use futures_core::Stream;
use futures_util::StreamExt as _;
use http::{Method, Request, StatusCode};
use http_body_util::BodyDataStream;
use hyper::body::Incoming;
use rubelet_http_core::{
    activity::Activity,
    query::Query,
    resource::Resource,
    respond::{self, ApiResult},
    status::ApiError,
};
use serde_json::json;
use tokio::{runtime::Handle, time::timeout};

use crate::{NodeView, Object, PodRef, session::local::container};

pub use self::request::{FileStream, FilesAnswer, FilesRefusal, FilesRequest};

/// Why only root copies files.
pub(crate) const ONLY_ROOT: &str =
    "only root may copy files of pods: they can be every file of this machine";

/// Number of bytes of refused files that are read, and the time limit for reading them.
const LINGER_BYTES: usize = 4 << 20;
const LINGER: Duration = Duration::from_secs(2);

/// Answers a request for files.
pub(crate) async fn files(
    view: &dyn NodeView,
    pod: PodRef,
    query: &Query,
    request: Request<Incoming>,
    activity: &Arc<Activity>,
) -> ApiResult {
    let items = view.list(Resource::Pods).items;
    let is_meant =
        |object: &&Object| *object.namespace == *pod.namespace && *object.name == *pod.name;
    let object = items.iter().find(is_meant);
    let object = object.ok_or_else(|| ApiError::not_found(Resource::Pods, &pod.name))?;
    let object = object.to_json(Resource::Pods);
    drop(items);
    let path = query.get("path").filter(|path| !path.is_empty());
    let path = path.ok_or_else(|| ApiError::bad_request("a path must be given: ?path=PATH"))?;
    let (name, writes) = (pod.name.clone(), request.method() == Method::PUT);
    let asked = FilesRequest {
        container: container(&object, &pod.name, query.get("container"))?,
        pod,
        path: path.to_owned(),
        incoming: writes.then(|| incoming(request.into_body(), activity)),
    };
    match view.files(asked).await {
        Ok(FilesAnswer::Sent(stream)) => Ok(respond::tar(stream)),
        Ok(FilesAnswer::Received {
            entries,
            bytes,
            skipped,
        }) => Ok(respond::json(&json!({
            "kind": "FilesReceived", "apiVersion": Resource::Manifests.api_version(),
            "entries": entries, "bytes": bytes, "skipped": skipped,
        }))),
        Err(refusal) => Err(error(&refusal, &name)),
    }
}

fn incoming(body: Incoming, activity: &Arc<Activity>) -> FileStream {
    Box::pin(Upload {
        body: Some(BodyDataStream::new(body)),
        activity: Arc::clone(activity),
    })
}

/// The files that a client sends. What is left of them when they are refused is read for a while:
/// a client that still writes when the connection closes gets an error of its own instead of the
/// reason.
struct Upload {
    body: Option<BodyDataStream<Incoming>>,
    activity: Arc<Activity>,
}

impl Stream for Upload {
    type Item = Result<Bytes, io::Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        let piece = ready!(body.poll_next_unpin(cx));
        self.activity.progress();
        if piece.is_none() {
            self.body = None;
        }
        Poll::Ready(piece.map(|piece| piece.map_err(io::Error::other)))
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        // Without a runtime the server has ended.
        if let (Some(body), Ok(runtime)) = (self.body.take(), Handle::try_current()) {
            runtime.spawn(timeout(LINGER, drain(body)));
        }
    }
}

async fn drain(mut body: BodyDataStream<Incoming>) {
    let mut left = LINGER_BYTES;
    while let Some(Ok(piece)) = body.next().await {
        left = left.saturating_sub(piece.len());
        if left == 0 {
            return;
        }
    }
}

fn error(refusal: &FilesRefusal, pod: &str) -> ApiError {
    let message = refusal.to_string();
    match refusal {
        FilesRefusal::NoPod => ApiError::not_found(Resource::Pods, pod),
        FilesRefusal::NotFound(_) => ApiError::gone(message),
        FilesRefusal::Invalid(_) => ApiError::bad_request(message),
        FilesRefusal::NotRunning | FilesRefusal::Conflict(_) => {
            ApiError::of_code(StatusCode::CONFLICT, message)
        }
        FilesRefusal::Busy => ApiError::of_code(StatusCode::TOO_MANY_REQUESTS, message),
        FilesRefusal::Internal(_) => ApiError::internal(message),
    }
}
