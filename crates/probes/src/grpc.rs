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
    http2::Link,
    report::{MAX_OUTPUT, Trouble, Verdict},
    stream::Stream,
    target, words,
};

/// After how long a connection that could not be opened is tried again, and how that grows: the
/// connection back-off of gRPC.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const PAUSE_GROWTH: f64 = 1.6;

/// One attempt. `timeout` is what `deadline` was made of, for the texts.
///
/// # Errors
/// No connection, no answer in time, or one that is not SERVING.
pub(crate) async fn attempt(
    user_agent: &HeaderValue,
    check: &GrpcCheck,
    host: &str,
    timeout: Duration,
    deadline: Instant,
) -> Result<(Verdict, String), Trouble> {
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
        Ok(Ok(None)) => return Err(Trouble::failed(unreachable())),
        Ok(Err(trouble)) => {
            let address = words::quoted(address.as_bytes());
            return Err(Trouble::errored(format!(
                "error: failed to connect service at {address}: {}",
                trouble.text
            )));
        }
        Err(_) => return Err(Trouble::timed_out(unreachable())),
    };
    let late = || {
        let timeout = format_go(timeout);
        Trouble::timed_out(format!(
            "timeout: health rpc did not complete within {timeout}"
        ))
    };
    let request = request(&address, user_agent, deadline)
        .map_err(|error| Trouble::errored(format!("error: health rpc probe failed: {error}")))?;
    let call = call(&mut link, &mut sender, request, &check.service);
    let Ok(outcome) = timeout_at(deadline, call).await else {
        return Err(late());
    };
    link.farewell(sender);
    match outcome {
        Ok(health::SERVING) => Ok((Verdict::Passed, "service healthy".to_owned())),
        Ok(other) => Err(Trouble::failed(format!(
            "service unhealthy (responded with \"{}\")",
            health::status_name(other)
        ))),
        Err(status) if status.code == Code::UNIMPLEMENTED => Err(Trouble::failed(format!(
            "error: this server does not implement the grpc health protocol \
             (grpc.health.v1.Health): {}",
            status.message
        ))),
        Err(status) if status.code == Code::DEADLINE_EXCEEDED => Err(late()),
        Err(status) => Err(Trouble::failed(format!(
            "error: health rpc probe failed: {status}"
        ))),
    }
}

/// Connects, again and again while there is time for another try; `None` when there is no more.
///
/// # Errors
/// This machine is short of what a connection needs.
async fn open(
    host: &str,
    port: u16,
    deadline: Instant,
) -> Result<Option<(Link, SendRequest<Bytes>)>, Trouble> {
    let mut pause = FIRST_PAUSE;
    loop {
        match dial(host, port, deadline).await {
            Ok(wire) => {
                if let Ok(opened) = Link::open(Stream::Plain(wire)).await {
                    return Ok(Some(opened));
                }
            }
            Err(trouble) if trouble.verdict == Verdict::Errored => return Err(trouble),
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
    // The protocol has eight digits for it.
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

/// Calls the service; the status that it answered.
async fn call(
    link: &mut Link,
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
    // An answer without a message carries its outcome in its head.
    Status::of_trailers(trailers.as_ref().unwrap_or(&head.headers))?;
    health::response(&data)
        .map_err(Status::internal)?
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
