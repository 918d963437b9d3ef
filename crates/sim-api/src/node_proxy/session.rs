//! Sessions with containers: exec, attach and port-forward. The upgraded connection is passed through to the
//! pod's node byte by byte. Source: upstream's `pod/rest/subresources.go`, `pod/strategy.go` and
//! `UpgradeAwareHandler`.

use std::{io, pin::Pin};

use bytes::Bytes;
use http::{HeaderMap, Method, Response, StatusCode, header, request::Parts};
use http_body_util::{BodyExt as _, Full};
use hyper::{
    body::Incoming,
    client::conn::http1,
    upgrade::{OnUpgrade, Upgraded},
};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncWriteExt as _, copy, split};

use super::{container, dial, node_of, pod};
use crate::{
    Kind, StatusError, meta,
    query::{Query, encode},
    request::Request,
    respond::{self, Body},
    state::ServerState,
};

/// Copies bytes in both directions; run after the response is sent.
pub(crate) type Session = Pin<Box<dyn Future<Output = ()> + Send>>;

/// WebSocket protocols that the API server translates for a node that does not support them.
const TRANSLATED: [&str; 2] = ["v5.channel.k8s.io", "SPDY/3.1+portforward.k8s.io"];

/// Feature that a node declares if it supports them.
const FEATURE: &str = "ExtendWebSocketsToKubelet";

/// Whether a subresource of a pod opens a session.
pub(crate) fn is_session(subresource: &str) -> bool {
    ["attach", "exec", "portforward"].contains(&subresource)
}

/// Opens a session with the pod's node. An error of the node is passed on, without a session.
pub(crate) async fn open(
    shared: &ServerState,
    request: &Request,
    parts: &Parts,
    client: OnUpgrade,
) -> Result<(Response<Body>, Option<Session>), StatusError> {
    if ![Method::GET, Method::POST].contains(&parts.method) {
        return Err(StatusError::method_not_allowed());
    }
    let pod = pod(shared, request)?;
    let path = path(&pod, request)?;
    let node = node_of(&pod)?;
    let (host, port) = dial::address(shared, &node)?;
    if !is_upgrade(&parts.headers) {
        return Err(StatusError::bad_request("Upgrade request required"));
    }
    if needs_translation(shared, &node, &parts.headers) {
        let message = format!(
            "the model does not translate WebSockets for node {node:?}, which does not declare \
             {FEATURE}"
        );
        return Err(StatusError::bad_request(message));
    }
    let answer = send(shared, (&host, port), &path, request, parts).await;
    let mut answer = answer.map_err(|error| failed(format!("error dialing backend: {error}")))?;
    let (status, headers) = (answer.status(), answer.headers().clone());
    let (body, session) = if status == StatusCode::SWITCHING_PROTOCOLS {
        let node = hyper::upgrade::on(&mut answer);
        let session: Session = Box::pin(pass_through(client, node));
        (respond::whole(Bytes::new()), Some(session))
    } else if status.as_u16() < 400 {
        let code = status.as_u16();
        return Err(failed(format!(
            "invalid upgrade response: status code {code}"
        )));
    } else {
        (answer.map_err(io::Error::other).boxed_unsync(), None)
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    Ok((response, session))
}

/// An error without a reason, as upstream.
fn failed(message: String) -> StatusError {
    StatusError::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
}

/// The path and query of the kubelet's API; the query is sorted as in Go.
fn path(pod: &Value, request: &Request) -> Result<String, StatusError> {
    let (target, query) = (&request.target, &request.query);
    let (namespace, name) = (target.namespace(), target.name());
    if target.subresource() == "portforward" {
        let ports: Vec<&str> = query.all("ports").collect();
        let mut path = format!("/portForward/{namespace}/{name}");
        if !ports.is_empty() {
            path += &format!("?port={}", encode(&ports.join(",")));
        }
        return Ok(path);
    }
    let container = container(pod, query.text("container"))?;
    let commands = match target.subresource() {
        "exec" => query.all("command").collect(),
        _ => Vec::new(),
    };
    let commands = commands
        .into_iter()
        .map(|word| format!("command={}", encode(word).replace("%20", "+")));
    let streams = [
        ("error", "stderr"),
        ("input", "stdin"),
        ("output", "stdout"),
        ("tty", "tty"),
    ];
    let streams = streams
        .into_iter()
        .filter(|(_, option)| is_set(query, option));
    let streams = streams.map(|(parameter, _)| format!("{parameter}=1"));
    let parameters: Vec<String> = commands.chain(streams).collect();
    let mut path = format!("/{}/{namespace}/{name}/{container}", target.subresource());
    if !parameters.is_empty() {
        path = format!("{path}?{}", parameters.join("&"));
    }
    Ok(path)
}

/// A boolean option of a connection: only `false` and `0` are false.
fn is_set(query: &Query, option: &str) -> bool {
    let value = query.get(option);
    value.is_some_and(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
}

fn is_upgrade(headers: &HeaderMap) -> bool {
    headers.contains_key(header::UPGRADE)
        && values(headers, header::CONNECTION).any(|word| word.eq_ignore_ascii_case("upgrade"))
}

fn needs_translation(shared: &ServerState, node: &str, headers: &HeaderMap) -> bool {
    let is_websocket =
        values(headers, header::UPGRADE).any(|word| word.eq_ignore_ascii_case("websocket"));
    let is_new = values(headers, header::SEC_WEBSOCKET_PROTOCOL)
        .any(|protocol| TRANSLATED.contains(&protocol));
    let kind = Kind::of("nodes").expect("it is in the table");
    let declares = || {
        let node = shared.with_store(|store| store.get(kind.storage, "", node).cloned());
        let features = node.map(|node| meta::entries(&node, "/status/declaredFeatures").to_vec());
        features
            .unwrap_or_default()
            .iter()
            .any(|one| one == FEATURE)
    };
    is_websocket && is_new && !declares()
}

/// The values of a header with lists.
fn values(headers: &HeaderMap, name: header::HeaderName) -> impl Iterator<Item = &str> {
    let values = headers.get_all(name).into_iter();
    let values = values.filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',').map(str::trim))
}

/// Sends the client's request to the node with the client's headers.
async fn send(
    shared: &ServerState,
    (host, port): (&str, u16),
    path: &str,
    request: &Request,
    parts: &Parts,
) -> io::Result<Response<Incoming>> {
    let stream = dial::connect(shared, host, port).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(io::Error::other)?;
    tokio::spawn(async move {
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(%error, "A connection to a node closed early");
        }
    });
    let mut sent = http::Request::builder()
        .method(parts.method.clone())
        .uri(path)
        .body(Full::new(request.body.clone()))
        .map_err(io::Error::other)?;
    *sent.headers_mut() = parts.headers.clone();
    // The node must not learn the client's credentials; the length is that of the body.
    for name in [
        header::AUTHORIZATION,
        header::CONTENT_LENGTH,
        header::TRANSFER_ENCODING,
    ] {
        sent.headers_mut().remove(name);
    }
    if let Some(token) = shared.config().node_token {
        let value = format!("Bearer {token}").parse();
        let value = value.map_err(io::Error::other)?;
        sent.headers_mut().insert(header::AUTHORIZATION, value);
    }
    sender.send_request(sent).await.map_err(io::Error::other)
}

/// Copies until one side closes, then closes both, as upstream does.
async fn pass_through(client: OnUpgrade, node: OnUpgrade) {
    let (client, node): (Upgraded, Upgraded) = match tokio::try_join!(client, node) {
        Ok(both) => both,
        Err(error) => {
            tracing::debug!(%error, "A session did not begin");
            return;
        }
    };
    let (mut from_client, mut to_client) = split(TokioIo::new(client));
    let (mut from_node, mut to_node) = split(TokioIo::new(node));
    // Everything that the closing side sent is written by then; the other side is shut down.
    let ended = tokio::select! {
        ended = copy(&mut from_client, &mut to_node) => ended,
        ended = copy(&mut from_node, &mut to_client) => ended,
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "A session broke");
    }
    let closing = async { tokio::join!(to_client.shutdown(), to_node.shutdown()) };
    // The connections are dropped in any case.
    let _ = tokio::time::timeout(dial::CONNECT, closing).await;
}
