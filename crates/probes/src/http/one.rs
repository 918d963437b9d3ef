//! HTTP/1.1: one request on one connection, driven by the task that waits for the response.

use std::{
    error::Error,
    future::{Future, poll_fn},
    io,
    pin::{Pin, pin},
    task::Poll,
};

use bytes::Bytes;
use http::{Request, response::Parts};
use http_body_util::Empty;
use hyper::{
    body::{Body, Incoming},
    client::conn::http1::{Builder, Connection, SendRequest},
};
use hyper_util::rt::TokioIo;

use super::BodyError;
use crate::{
    report::{MAX_OUTPUT, ProbeFailure},
    stream::Stream,
    words,
};

/// Maximum size of a response head.
const MAX_HEAD: usize = 64 * 1024;

/// The rest of a response.
pub(super) struct ResponseBody {
    connection: Box<Connection<TokioIo<Stream>, Empty<Bytes>>>,
    ended: bool,
    body: Incoming,
    /// Dropping it early would close the connection.
    _sender: SendRequest<Empty<Bytes>>,
}

/// Sends a request and waits for the head of the response.
///
/// # Errors
/// The connection broke, or the response is not HTTP.
pub(super) async fn ask(
    stream: Stream,
    request: Request<Empty<Bytes>>,
) -> Result<(Parts, ResponseBody), ProbeFailure> {
    let (mut sender, connection) = Builder::new()
        .title_case_headers(true)
        .allow_obsolete_multiline_headers_in_responses(true)
        .allow_spaces_after_header_name_in_responses(true)
        .max_buf_size(MAX_HEAD)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| ProbeFailure::failed(reason(&error, &[])))?;
    let mut connection = Box::new(connection);
    let mut ended = false;
    let answer = {
        let mut answer = pin!(sender.send_request(request));
        poll_fn(|cx| {
            ended = ended || connection.poll_without_shutdown(cx).is_ready();
            answer.as_mut().poll(cx)
        })
        .await
    };
    match answer {
        Ok(answer) => {
            let (head, body) = answer.into_parts();
            let rest = ResponseBody {
                connection,
                ended,
                body,
                _sender: sender,
            };
            Ok((head, rest))
        }
        Err(error) => {
            let unread = connection.into_parts().read_buf;
            Err(ProbeFailure::failed(reason(&error, &unread)))
        }
    }
}

impl ResponseBody {
    /// Reads the body, at most [`MAX_OUTPUT`] bytes of it.
    ///
    /// # Errors
    /// See [`BodyError`].
    pub(super) async fn read(mut self) -> Result<Vec<u8>, BodyError> {
        let announced = self.body.size_hint().exact().unwrap_or_default();
        let capacity = usize::try_from(announced).map_or(MAX_OUTPUT, |size| size.min(MAX_OUTPUT));
        let mut read = Vec::with_capacity(capacity);
        while read.len() < MAX_OUTPUT {
            match self.frame().await {
                None => {
                    self.connection.into_parts().io.into_inner().close();
                    break;
                }
                Some(Err(error)) => return Err(BodyError(body_reason(&error))),
                Some(Ok(frame)) => {
                    let data = frame.into_data().unwrap_or_default();
                    let space = MAX_OUTPUT - read.len();
                    read.extend_from_slice(&data[..data.len().min(space)]);
                }
            }
        }
        Ok(read)
    }

    async fn frame(&mut self) -> Option<hyper::Result<hyper::body::Frame<Bytes>>> {
        poll_fn(|cx| -> Poll<_> {
            self.ended = self.ended || self.connection.poll_without_shutdown(cx).is_ready();
            Pin::new(&mut self.body).poll_frame(cx)
        })
        .await
    }
}

/// Why there is no response, with the messages of Go's client. `unread` is the received data.
fn reason(error: &hyper::Error, unread: &[u8]) -> String {
    let broken = |text: &str| {
        if unread.is_empty() {
            text.to_owned()
        } else {
            format!("net/http: HTTP/1.x transport connection broken: {text}")
        }
    };
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return broken(&error.to_string());
        }
        match error.downcast_ref::<hyper::Error>() {
            Some(error) if error.is_incomplete_message() => {
                return broken(if unread.is_empty() {
                    "EOF"
                } else {
                    "unexpected EOF"
                });
            }
            Some(error) if error.is_parse_too_large() => {
                return format!(
                    "net/http: server response headers exceeded {MAX_HEAD} bytes; aborted"
                );
            }
            Some(error) if error.is_parse() => return broken(&malformed(error, unread)),
            _ => cause = error.source(),
        }
    }
    // The remaining case is a response that arrived before the request was sent.
    broken(&malformed(error, unread))
}

fn malformed(error: &hyper::Error, unread: &[u8]) -> String {
    let line = unread
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.is_empty() {
        return error.to_string();
    }
    if error.is_parse_status() {
        let status = line.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
        return format!("malformed HTTP status code {}", words::quoted(status));
    }
    if line.starts_with(b"HTTP/1.") {
        return "malformed MIME header".to_owned();
    }
    format!("malformed HTTP response {}", words::quoted(line))
}

fn body_reason(error: &hyper::Error) -> String {
    match error
        .source()
        .and_then(|cause| cause.downcast_ref::<io::Error>())
    {
        Some(error) if error.kind() == io::ErrorKind::UnexpectedEof => "unexpected EOF".to_owned(),
        Some(error) => error.to_string(),
        None if error.is_incomplete_message() => "unexpected EOF".to_owned(),
        None => error.to_string(),
    }
}
