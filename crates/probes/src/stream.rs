//! A connection with or without TLS: one type, so that the protocols above are implemented once.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::client::TlsStream;

use crate::{socket::Socket, tls};

/// The transport of HTTP and gRPC.
pub(crate) enum Stream {
    /// TCP.
    Plain(Socket),
    /// TLS over TCP.
    Secure(Box<TlsStream<Socket>>),
}

impl Stream {
    /// Whether the server chose HTTP/2 during the TLS handshake.
    pub(crate) fn chose_http2(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Secure(tls) => tls.get_ref().1.alpn_protocol() == Some(tls::HTTP2),
        }
    }

    /// Sends the TLS close_notify, without waiting.
    pub(crate) fn close(mut self) {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let _ = Pin::new(&mut self).poll_shutdown(&mut cx);
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_read(cx, buf),
            Self::Secure(tls) => {
                let outcome = ready!(Pin::new(tls).poll_read(cx, buf));
                Poll::Ready(match outcome {
                    // Popular servers close without close_notify; Go accepts that as an end as
                    // well.
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(()),
                    Err(error) => Err(io::Error::new(error.kind(), tls::words(&error))),
                    Ok(()) => Ok(()),
                })
            }
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_write(cx, buf),
            Self::Secure(tls) => Pin::new(tls).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_flush(cx),
            Self::Secure(tls) => Pin::new(tls).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_shutdown(cx),
            Self::Secure(tls) => Pin::new(tls).poll_shutdown(cx),
        }
    }
}
