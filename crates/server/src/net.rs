//! Looks at the network from inside a pod: `POST
//! /apis/node.rubelet.dev/v1alpha1/namespaces/{ns}/pods/{name}/net?probe=DOCUMENT`, answered with a
//! line of JSON for each report. Kubernetes has no such path.

mod request;

use std::pin::Pin;

use futures_util::StreamExt as _;
use http::{Request, StatusCode};
use http_body_util::BodyDataStream;
use hyper::body::{Body as _, Incoming};
use rubelet_http_core::{
    query::Query,
    resource::Resource,
    respond::{self, ApiResult},
    shutdown::Shutdown,
    status::ApiError,
};

use crate::{NodeView, PodRef, log::until};

pub use self::request::{NetRefusal, NetRequest, NetStream};

/// Why only root looks at the network of a pod.
pub(crate) const ONLY_ROOT: &str =
    "only root may look at the network from inside a pod: it reaches what the pod reaches";

/// Answers a request for a probe.
pub(crate) async fn net(
    view: &dyn NodeView,
    pod: PodRef,
    query: &Query,
    request: Request<Incoming>,
    shutdown: Shutdown,
) -> ApiResult {
    let text = query.get("probe").filter(|text| !text.is_empty());
    let text = text.ok_or_else(|| ApiError::bad_request("a probe must be given: ?probe=JSON"))?;
    let probe = serde_json::from_str(text)
        .map_err(|error| ApiError::bad_request(format!("probe: it is no JSON: {error}")))?;
    let name = pod.name.clone();
    let asked = NetRequest {
        pod,
        probe,
        stop: stop(request.into_body()),
    };
    match view.net(asked).await {
        Ok(lines) => Ok(respond::json_pieces(until(shutdown, lines))),
        Err(refusal) => Err(error(&refusal, &name)),
    }
}

/// A client that sends a body ends it to stop the probe; one without a body goes away.
fn stop(body: Incoming) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
    if body.is_end_stream() {
        return None;
    }
    let mut body = BodyDataStream::new(body);
    Some(Box::pin(async move {
        while let Some(Ok(_)) = body.next().await {}
    }))
}

fn error(refusal: &NetRefusal, pod: &str) -> ApiError {
    let message = refusal.to_string();
    match refusal {
        NetRefusal::NoPod => ApiError::not_found(Resource::Pods, pod),
        NetRefusal::Invalid(_) => ApiError::bad_request(message),
        NetRefusal::NotReady => ApiError::of_code(StatusCode::CONFLICT, message),
        NetRefusal::Busy => ApiError::of_code(StatusCode::TOO_MANY_REQUESTS, message),
        NetRefusal::Internal(_) => ApiError::internal(message),
    }
}
