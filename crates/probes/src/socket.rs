//! A TCP connection with Go's error messages, which is always reset instead of shut down.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

use crate::words;

/// The connection. Its socket has a linger time of zero: dropping it resets the connection.
pub(crate) struct Socket {
    tcp: TcpStream,
    local: SocketAddr,
    remote: SocketAddr,
    first: [u8; 5],
    /// Number of received bytes in `first`.
    came: usize,
}

impl Socket {
    pub(crate) fn new(tcp: TcpStream, local: SocketAddr, remote: SocketAddr) -> Self {
        Self {
            tcp,
            local,
            remote,
            first: [0; 5],
            came: 0,
        }
    }

    /// The first bytes that the peer sent, at most five: the head of a TLS record.
    pub(crate) fn first_bytes(&self) -> &[u8] {
        &self.first[..self.came]
    }

    pub(crate) fn remote(&self) -> SocketAddr {
        self.remote
    }

    fn put_in_words(&self, call: &str, error: &io::Error) -> io::Error {
        let Self { local, remote, .. } = self;
        let text = format!("{call} tcp {local}->{remote}: {call}: {}", words::of(error));
        io::Error::new(error.kind(), text)
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.tcp).poll_read(cx, buf))
            .map_err(|error| self.put_in_words("read", &error))?;
        let came = self.came;
        for (place, byte) in self.first[came..].iter_mut().zip(&buf.filled()[before..]) {
            *place = *byte;
        }
        self.came = self.first.len().min(came + buf.filled().len() - before);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.tcp).poll_write(cx, buf));
        Poll::Ready(written.map_err(|error| self.put_in_words("write", &error)))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Does nothing: the side that sends the first FIN enters TIME_WAIT, and neither side should.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
