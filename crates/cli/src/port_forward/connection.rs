//! One forwarded connection, and the one to the agent that all of them share.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::BytesMut;
use rubelet_streaming::{Duplex, PortDialer};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf},
    net::TcpStream,
    sync::watch,
};

/// Maximum size of one read.
const READ: usize = 64 << 10;

/// Connects to the port of the pod, and copies bytes in both directions until both have ended. The
/// error is for the user.
pub(super) async fn forward(
    local: TcpStream,
    remote: u16,
    dialer: Arc<dyn PortDialer>,
) -> Result<(), anyhow::Error> {
    let Duplex {
        mut source,
        mut sink,
    } = dialer
        .dial(remote)
        .await
        .map_err(|error| match error.message.as_str() {
            "" => anyhow::anyhow!("{error}"),
            message => anyhow::anyhow!("{message}"),
        })?;
    local.set_nodelay(true)?;
    let (mut from, mut to) = local.into_split();
    let outward = async {
        let mut buffer = BytesMut::new();
        loop {
            buffer.reserve(READ);
            if from.read_buf(&mut buffer).await? == 0 {
                return sink.close().await;
            }
            sink.write(buffer.split().freeze()).await?;
        }
    };
    let inward = async {
        while let Some(bytes) = source.read().await? {
            to.write_all(&bytes).await?;
        }
        to.shutdown().await
    };
    // An error in one direction also ends the other: the connection is reset on both sides.
    match tokio::try_join!(outward, inward) {
        Err(error) if is_usual(&error) => Ok(()),
        ended => ended.map(|_| ()).map_err(Into::into),
    }
}

/// Peers that disconnect without a shutdown are not reported.
fn is_usual(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::NotConnected
    )
}

/// A connection that notifies when the other side has closed it.
pub(super) struct CloseNotifier<I> {
    io: I,
    closed: watch::Sender<bool>,
}

impl<I> CloseNotifier<I> {
    /// The connection, and a receiver that becomes true at its end.
    pub(super) fn new(io: I) -> (Self, watch::Receiver<bool>) {
        let (closed, told) = watch::channel(false);
        (Self { io, closed }, told)
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for CloseNotifier<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.io).poll_read(context, buffer));
        if read.is_err() || buffer.filled().len() == before && buffer.remaining() > 0 {
            self.closed.send_replace(true);
        }
        Poll::Ready(read)
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for CloseNotifier<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}
