//! One HTTP/2 connection for one request, driven by the task that waits for the response.

use std::{
    future::poll_fn,
    io,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use h2::client::{Builder, Connection, SendRequest};

use crate::{report::MAX_OUTPUT, stream::Stream};

/// Enough for the part of a response that is read, and for data in flight.
const WINDOW: u32 = 2 * MAX_OUTPUT as u32;

/// The connection. It only makes progress while [`Http2Connection::drive`] is awaited.
pub(crate) struct Http2Connection {
    connection: Box<Connection<Stream, Bytes>>,
    closed: bool,
}

impl Http2Connection {
    /// Sends the preface, and returns when the server has sent its settings, which proves that it
    /// is an HTTP/2 server.
    ///
    /// # Errors
    /// It is not an HTTP/2 server, or closed the connection.
    pub(crate) async fn open(stream: Stream) -> Result<(Self, SendRequest<Bytes>), h2::Error> {
        let (sender, connection) = Builder::new()
            .enable_push(false)
            .initial_window_size(WINDOW)
            .initial_connection_window_size(u32::from(u16::MAX))
            .max_header_list_size(64 * 1024)
            // None until the server's settings allow some.
            .initial_max_send_streams(0)
            .handshake(stream)
            .await?;
        let mut link = Self {
            connection: Box::new(connection),
            closed: false,
        };
        poll_fn(|cx| {
            let ended = match Pin::new(&mut link.connection).poll(cx) {
                Poll::Pending => None,
                Poll::Ready(Ok(())) => Some(h2::Error::from(h2::Reason::NO_ERROR)),
                Poll::Ready(Err(error)) => Some(error),
            };
            link.closed = ended.is_some();
            match ended {
                _ if link.connection.max_concurrent_send_streams() > 0 => Poll::Ready(Ok(())),
                Some(error) => Poll::Ready(Err(error)),
                None => Poll::Pending,
            }
        })
        .await?;
        Ok((link, sender))
    }

    /// Drives the connection until `future` completes.
    pub(crate) async fn drive<F: Future>(&mut self, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|cx| {
            self.closed = self.closed || Pin::new(&mut self.connection).poll(cx).is_ready();
            future.as_mut().poll(cx)
        })
        .await
    }

    /// Closes the connection: sends GOAWAY where possible, without waiting.
    pub(crate) fn close(mut self, sender: SendRequest<Bytes>) {
        drop(sender);
        if !self.closed {
            let mut cx = Context::from_waker(Waker::noop());
            let _ = Pin::new(&mut self.connection).poll(&mut cx);
        }
    }
}

/// The I/O error that broke the connection, if it was not a protocol error.
pub(crate) fn io_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe => "EOF".to_owned(),
        _ => error.to_string(),
    }
}
