//! SPDY tunneled through a WebSocket: the concatenated bytes of its messages.

use std::io;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{
    SinkExt as _, StreamExt as _,
    stream::{SplitSink, SplitStream},
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::{WebSocketStream, tungstenite::Message};

use crate::{Duplex, Sink, Source};

/// The bytes of a WebSocket.
pub(crate) async fn tunnel<I>(io: I) -> Duplex
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sink, stream) = super::accept(io).await.split();
    Duplex {
        source: Box::new(TunnelSource(stream)),
        sink: Box::new(TunnelSink(Some(sink))),
    }
}

struct TunnelSource<I>(SplitStream<WebSocketStream<I>>);

#[async_trait]
impl<I: AsyncRead + AsyncWrite + Unpin + Send> Source for TunnelSource<I> {
    async fn read(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            match self.0.next().await {
                None => return Ok(None),
                Some(Err(error)) => return Err(io::Error::other(error)),
                Some(Ok(Message::Binary(bytes))) if !bytes.is_empty() => return Ok(Some(bytes)),
                Some(Ok(_)) => {}
            }
        }
    }
}

struct TunnelSink<I>(Option<SplitSink<WebSocketStream<I>, Message>>);

#[async_trait]
impl<I: AsyncRead + AsyncWrite + Unpin + Send> Sink for TunnelSink<I> {
    async fn write(&mut self, bytes: Bytes) -> io::Result<()> {
        let sink = self.0.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        let sent = sink.send(Message::Binary(bytes)).await;
        sent.map_err(io::Error::other)
    }

    async fn close(&mut self) -> io::Result<()> {
        match self.0.take() {
            Some(mut sink) => sink.close().await.map_err(io::Error::other),
            None => Ok(()),
        }
    }
}
