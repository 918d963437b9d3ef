//! One HTTP/2 connection for one request, driven by the task that waits for the answer.

use std::{
    future::poll_fn,
    io,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use h2::client::{Builder, Connection, SendRequest};

use crate::{report::MAX_OUTPUT, stream::Stream};

/// Enough for what is read of an answer, and what the peer may have under way.
const WINDOW: u32 = 2 * MAX_OUTPUT as u32;

/// The connection. Nothing moves but while [`Link::drive`] is awaited.
pub(crate) struct Link {
    connection: Box<Connection<Stream, Bytes>>,
    closed: bool,
}

impl Link {
    /// Speaks first, and returns when the server has answered with its settings: then it is an
    /// HTTP/2 server for certain.
    ///
    /// # Errors
    /// It is none, or closed the connection.
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

    /// Waits for something that this connection is to bring.
    pub(crate) async fn drive<F: Future>(&mut self, wanted: F) -> F::Output {
        let mut wanted = pin!(wanted);
        poll_fn(|cx| {
            self.closed = self.closed || Pin::new(&mut self.connection).poll(cx).is_ready();
            wanted.as_mut().poll(cx)
        })
        .await
    }

    /// Tells the server that this was all. Waits for nothing.
    pub(crate) fn farewell(mut self, sender: SendRequest<Bytes>) {
        drop(sender);
        if !self.closed {
            let mut cx = Context::from_waker(Waker::noop());
            let _ = Pin::new(&mut self.connection).poll(&mut cx);
        }
    }
}

/// What broke the connection, when it was not HTTP/2 that did.
pub(crate) fn io_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe => "EOF".to_owned(),
        _ => error.to_string(),
    }
}
