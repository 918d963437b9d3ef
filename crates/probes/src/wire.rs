//! A TCP connection whose errors read as Go's and which is never shut down politely.

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

/// The connection. Its socket was opened with a linger time of zero: dropping it resets it.
pub(crate) struct Wire {
    tcp: TcpStream,
    local: SocketAddr,
    remote: SocketAddr,
    first: [u8; 5],
    /// How many bytes of `first` have come.
    came: usize,
}

impl Wire {
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

impl AsyncRead for Wire {
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

impl AsyncWrite for Wire {
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

    /// Does nothing: whoever sends the first FIN is left with TIME_WAIT, and no side shall be.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
