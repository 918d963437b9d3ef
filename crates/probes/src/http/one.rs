//! HTTP/1.1: one request on one connection, driven by the task that waits for the answer.

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

use crate::{
    report::{MAX_OUTPUT, Trouble},
    stream::Stream,
    words,
};

/// The most bytes that the head of an answer may have.
const MAX_HEAD: usize = 64 * 1024;

/// The rest of an answer.
pub(super) struct Rest {
    connection: Box<Connection<TokioIo<Stream>, Empty<Bytes>>>,
    ended: bool,
    body: Incoming,
    /// Dropped early, it would close the connection.
    _sender: SendRequest<Empty<Bytes>>,
}

/// Sends a request and waits for the head of the answer.
///
/// # Errors
/// The connection broke, or what came is not HTTP.
pub(super) async fn ask(
    stream: Stream,
    request: Request<Empty<Bytes>>,
) -> Result<(Parts, Rest), Trouble> {
    let (mut sender, connection) = Builder::new()
        .title_case_headers(true)
        .allow_obsolete_multiline_headers_in_responses(true)
        .allow_spaces_after_header_name_in_responses(true)
        .max_buf_size(MAX_HEAD)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| Trouble::failed(reason(&error, &[])))?;
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
            let rest = Rest {
                connection,
                ended,
                body,
                _sender: sender,
            };
            Ok((head, rest))
        }
        Err(error) => {
            let unread = connection.into_parts().read_buf;
            Err(Trouble::failed(reason(&error, &unread)))
        }
    }
}

impl Rest {
    /// Reads the body, at most [`MAX_OUTPUT`] bytes of it.
    ///
    /// # Errors
    /// It broke off.
    pub(super) async fn read(mut self) -> Result<Vec<u8>, String> {
        let announced = self.body.size_hint().exact().unwrap_or_default();
        let capacity = usize::try_from(announced).map_or(MAX_OUTPUT, |size| size.min(MAX_OUTPUT));
        let mut read = Vec::with_capacity(capacity);
        while read.len() < MAX_OUTPUT {
            match self.frame().await {
                None => {
                    self.connection.into_parts().io.into_inner().farewell();
                    break;
                }
                Some(Err(error)) => return Err(body_reason(&error)),
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

/// Why no answer came, in the words of Go's client. `unread` is what did come.
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
    // What is left is an answer that came before there was a question.
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
