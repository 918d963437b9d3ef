//! Requests that are proxied to a node: container logs, sessions, and other GET requests.

mod dial;
pub(crate) mod session;

use std::{io, sync::Arc};

use bytes::Bytes;
use http::{Response, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;

use crate::{StatusError, meta, request::Request, respond::Body, state::ServerState};

/// Options of a pod's log that are passed to the node.
const LOG_OPTIONS: [&str; 8] = [
    "follow",
    "previous",
    "sinceSeconds",
    "sinceTime",
    "timestamps",
    "tailLines",
    "limitBytes",
    "stream",
];

/// Passes on the node's response.
pub(crate) async fn get(
    shared: &Arc<ServerState>,
    request: &Request,
) -> Result<Response<Body>, StatusError> {
    let (node, path) = match request.kind().storage {
        "pods" => log_path(shared, request)?,
        _ => {
            let mut path = format!("/{}", request.target.rest);
            let query = request.query.encoded();
            if !query.is_empty() {
                path = format!("{path}?{query}");
            }
            (request.target.name().to_owned(), path)
        }
    };
    let (host, port) = dial::address(shared, &node)?;
    let sent = send(shared, &host, port, &path).await;
    sent.map_err(|error| {
        let url = format!("https://{host}:{port}{path}");
        StatusError::internal(format!("Get {url:?}: {error}"))
    })
}

/// The pod of a request.
fn pod(shared: &ServerState, request: &Request) -> Result<Arc<Value>, StatusError> {
    let target = &request.target;
    let pod = shared.with_store(|store| {
        store
            .get("pods", target.namespace(), target.name())
            .cloned()
    });
    pod.ok_or_else(|| StatusError::not_found(target.kind, target.name()))
}

/// The node that a pod is bound to.
fn node_of(pod: &Value) -> Result<String, StatusError> {
    let node = meta::text(pod, "/spec/nodeName");
    if node.is_empty() {
        let message = format!("pod {} does not have a host assigned", meta::name(pod));
        return Err(StatusError::bad_request(message));
    }
    Ok(node.to_owned())
}

/// The node of a container's log, and the path on that node.
fn log_path(shared: &ServerState, request: &Request) -> Result<(String, String), StatusError> {
    let (target, query) = (&request.target, &request.query);
    let pod = pod(shared, request)?;
    let container = container(&pod, query.text("container"))?;
    let node = node_of(&pod)?;
    let options = LOG_OPTIONS.iter().filter_map(|option| {
        let value = query.get(option)?;
        Some(format!(
            "{option}={}",
            value.replace('+', "%2B").replace(':', "%3A")
        ))
    });
    let options: Vec<String> = options.collect();
    let mut path = format!(
        "/containerLogs/{}/{}/{container}",
        target.namespace(),
        target.name()
    );
    if !options.is_empty() {
        path = format!("{path}?{}", options.join("&"));
    }
    Ok((node, path))
}

/// The requested container, or the only one. Source: upstream's `validateContainer`.
fn container(pod: &Value, asked: &str) -> Result<String, StatusError> {
    let lists = ["containers", "initContainers", "ephemeralContainers"];
    let names = |list: &str| -> Vec<String> {
        let containers = meta::entries(pod, &format!("/spec/{list}")).iter();
        containers
            .map(|one| meta::text(one, "/name").to_owned())
            .collect()
    };
    let pod_name = meta::name(pod);
    if !asked.is_empty() {
        if lists
            .iter()
            .any(|list| names(list).iter().any(|name| name == asked))
        {
            return Ok(asked.to_owned());
        }
        let message = format!("container {asked} is not valid for pod {pod_name}");
        return Err(StatusError::bad_request(message));
    }
    match names("containers").as_slice() {
        [only] => Ok(only.clone()),
        [] => {
            let message = format!("a container name must be specified for pod {pod_name}");
            Err(StatusError::bad_request(message))
        }
        several => {
            let (init, ephemeral) = (names("initContainers"), names("ephemeralContainers"));
            let all = [&init, several, &ephemeral].concat();
            let message = format!(
                "a container name must be specified for pod {pod_name}, choose one of: [{}]",
                all.join(" ")
            );
            Err(StatusError::bad_request(message))
        }
    }
}

async fn send(
    shared: &ServerState,
    host: &str,
    port: u16,
    path: &str,
) -> io::Result<Response<Body>> {
    let stream = dial::connect(shared, host, port).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(io::Error::other)?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "A connection to a node closed early");
        }
    });
    let uri: Uri = path.parse().map_err(io::Error::other)?;
    let mut request = http::Request::get(uri).header(header::HOST, format!("{host}:{port}"));
    if let Some(token) = shared.config().node_token {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    let request = request
        .body(Empty::<Bytes>::new())
        .map_err(io::Error::other)?;
    let answer = sender
        .send_request(request)
        .await
        .map_err(io::Error::other)?;
    let (parts, body) = answer.into_parts();
    let mut response = Response::new(body.map_err(io::Error::other).boxed_unsync());
    *response.status_mut() = match parts.status {
        // The node denies the server, not the user.
        StatusCode::UNAUTHORIZED => StatusCode::INTERNAL_SERVER_ERROR,
        status => status,
    };
    if let Some(kind) = parts.headers.get(header::CONTENT_TYPE) {
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, kind.clone());
    }
    Ok(response)
}
