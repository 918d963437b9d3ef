//! A grpc probe: one call of the health service over plaintext HTTP/2.

mod health;
mod status;

use std::{future::poll_fn, time::Duration};

use bytes::Bytes;
use h2::{RecvStream, client::SendRequest};
use http::{HeaderMap, HeaderValue, Method, Request, header};
use rubelet_api::probe::{GrpcCheck, TargetPort};
use rubelet_base::duration::format_go;
use tokio::time::{Instant, sleep, timeout_at};

use self::status::{Code, Status};
use crate::{
    dial::dial,
    http2::Http2Connection,
    report::{MAX_OUTPUT, ProbeFailure, ProbeOutcome},
    stream::Stream,
    target, words,
};

/// Delay before a failed connection is retried, and its growth: gRPC's connection back-off.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const PAUSE_GROWTH: f64 = 1.6;

/// One attempt. `timeout` is the duration behind `deadline`, for messages.
///
/// # Errors
/// No connection, no response in time, or a status other than SERVING.
pub(crate) async fn attempt(
    user_agent: &HeaderValue,
    check: &GrpcCheck,
    host: &str,
    timeout: Duration,
    deadline: Instant,
) -> Result<(ProbeOutcome, String), ProbeFailure> {
    let host = target::host(None, host)?;
    let port = target::port(&TargetPort::Number(check.port))?;
    let address = words::joined(host, port);
    let unreachable = || {
        let (address, timeout) = (words::quoted(address.as_bytes()), format_go(timeout));
        format!(
            "timeout: failed to connect service {address} within {timeout}: \
             context deadline exceeded"
        )
    };
    let opened = timeout_at(deadline, open(host, port, deadline)).await;
    let (mut link, mut sender) = match opened {
        Ok(Ok(Some(opened))) => opened,
        Ok(Ok(None)) => return Err(ProbeFailure::failed(unreachable())),
        Ok(Err(failure)) => {
            let address = words::quoted(address.as_bytes());
            return Err(ProbeFailure::errored(format!(
                "error: failed to connect service at {address}: {}",
                failure.text
            )));
        }
        Err(_) => return Err(ProbeFailure::timed_out(unreachable())),
    };
    let late = || {
        let timeout = format_go(timeout);
        ProbeFailure::timed_out(format!(
            "timeout: health rpc did not complete within {timeout}"
        ))
    };
    let request = request(&address, user_agent, deadline).map_err(|error| {
        ProbeFailure::errored(format!("error: health rpc probe failed: {error}"))
    })?;
    let call = call(&mut link, &mut sender, request, &check.service);
    let Ok(outcome) = timeout_at(deadline, call).await else {
        return Err(late());
    };
    link.close(sender);
    match outcome {
        Ok(health::SERVING) => Ok((ProbeOutcome::Passed, "service healthy".to_owned())),
        Ok(other) => Err(ProbeFailure::failed(format!(
            "service unhealthy (responded with \"{}\")",
            health::status_name(other)
        ))),
        Err(status) if status.code == Code::UNIMPLEMENTED => Err(ProbeFailure::failed(format!(
            "error: this server does not implement the grpc health protocol \
             (grpc.health.v1.Health): {}",
            status.message
        ))),
        Err(status) if status.code == Code::DEADLINE_EXCEEDED => Err(late()),
        Err(status) => Err(ProbeFailure::failed(format!(
            "error: health rpc probe failed: {status}"
        ))),
    }
}

/// Connects, and retries until the deadline; `None` if it has passed.
///
/// # Errors
/// This machine lacks resources for a connection.
async fn open(
    host: &str,
    port: u16,
    deadline: Instant,
) -> Result<Option<(Http2Connection, SendRequest<Bytes>)>, ProbeFailure> {
    let mut pause = FIRST_PAUSE;
    loop {
        match dial(host, port, deadline).await {
            Ok(socket) => {
                if let Ok(opened) = Http2Connection::open(Stream::Plain(socket)).await {
                    return Ok(Some(opened));
                }
            }
            Err(failure) if failure.verdict == ProbeOutcome::Errored => return Err(failure),
            Err(_) => {}
        }
        if Instant::now() + pause >= deadline {
            return Ok(None);
        }
        sleep(pause).await;
        pause = pause.mul_f64(PAUSE_GROWTH);
    }
}

fn request(
    address: &str,
    user_agent: &HeaderValue,
    deadline: Instant,
) -> Result<Request<()>, http::Error> {
    let left = deadline.duration_since(Instant::now()).as_millis();
    // The protocol allows eight digits.
    let left = left.clamp(1, 99_999_999);
    Request::builder()
        .method(Method::POST)
        .uri(format!("http://{address}{}", health::CHECK))
        .header(header::CONTENT_TYPE, "application/grpc")
        .header(header::USER_AGENT, user_agent)
        .header(header::TE, "trailers")
        .header("grpc-timeout", format!("{left}m"))
        .body(())
}

/// Calls the service; returns the status in its response.
async fn call(
    link: &mut Http2Connection,
    sender: &mut SendRequest<Bytes>,
    request: Request<()>,
    service: &str,
) -> Result<i32, Status> {
    let broken = |error: h2::Error| Status::of_error(&error);
    let (answer, mut body) = sender.send_request(request, false).map_err(broken)?;
    body.send_data(health::request(service), true)
        .map_err(broken)?;
    let (head, body) = link.drive(answer).await.map_err(broken)?.into_parts();
    if let Some(status) = Status::of_head(head.status, &head.headers) {
        return Err(status);
    }
    let (data, trailers) = link.drive(read(body)).await?;
    // A response without a message carries its status in the headers.
    Status::of_trailers(trailers.as_ref().unwrap_or(&head.headers))?;
    health::response(&data)
        .map_err(|error| Status::internal(error.to_string()))?
        .ok_or_else(|| {
            Status::internal(
                "cardinality violation: received no response message from non-server-streaming RPC",
            )
        })
}

async fn read(mut body: RecvStream) -> Result<(Vec<u8>, Option<HeaderMap>), Status> {
    let broken = |error: h2::Error| Status::of_error(&error);
    let mut data = Vec::new();
    while let Some(chunk) = poll_fn(|cx| body.poll_data(cx)).await {
        let chunk = chunk.map_err(broken)?;
        if data.len() + chunk.len() > MAX_OUTPUT {
            return Err(Status::too_large(MAX_OUTPUT));
        }
        data.extend_from_slice(&chunk);
    }
    let trailers = poll_fn(|cx| body.poll_trailers(cx)).await.map_err(broken)?;
    Ok((data, trailers))
}
