//! HTTP/2, which a server may choose during the TLS handshake.

use std::future::poll_fn;

use bytes::Bytes;
use h2::{RecvStream, client::SendRequest};
use http::{HeaderName, Request, header, response::Parts};

use super::BodyError;
use crate::{
    http2::{Http2Connection, io_words},
    report::{MAX_OUTPUT, ProbeFailure},
    stream::Stream,
};

/// The rest of a response.
pub(super) struct ResponseBody {
    link: Http2Connection,
    sender: SendRequest<Bytes>,
    body: RecvStream,
}

/// Sends a request and waits for the head of the response.
///
/// # Errors
/// The connection or the stream broke.
pub(super) async fn ask(
    stream: Stream,
    mut request: Request<()>,
) -> Result<(Parts, ResponseBody), ProbeFailure> {
    // Connection-specific headers of HTTP/1.1 are not allowed in HTTP/2.
    for name in [
        header::CONNECTION,
        header::UPGRADE,
        header::TE,
        HeaderName::from_static("keep-alive"),
        HeaderName::from_static("proxy-connection"),
    ] {
        request.headers_mut().remove(name);
    }
    let failed = |error: h2::Error| ProbeFailure::failed(reason(&error));
    let (mut link, mut sender) = Http2Connection::open(stream).await.map_err(failed)?;
    let (answer, _) = sender.send_request(request, true).map_err(failed)?;
    let (head, body) = link.drive(answer).await.map_err(failed)?.into_parts();
    Ok((head, ResponseBody { link, sender, body }))
}

impl ResponseBody {
    /// Reads the body, at most [`MAX_OUTPUT`] bytes of it.
    ///
    /// # Errors
    /// See [`BodyError`].
    pub(super) async fn read(mut self) -> Result<Vec<u8>, BodyError> {
        let mut read = Vec::new();
        while read.len() < MAX_OUTPUT {
            let body = &mut self.body;
            match self.link.drive(poll_fn(|cx| body.poll_data(cx))).await {
                None => {
                    drop(self.body);
                    self.link.close(self.sender);
                    break;
                }
                Some(Err(error)) => return Err(BodyError(reason(&error))),
                Some(Ok(data)) => {
                    let space = MAX_OUTPUT - read.len();
                    read.extend_from_slice(&data[..data.len().min(space)]);
                }
            }
        }
        Ok(read)
    }
}

fn reason(error: &h2::Error) -> String {
    match error.get_io() {
        Some(error) => io_words(error),
        None => format!("http2: {error}"),
    }
}
