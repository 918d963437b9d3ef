//! Tokio connections as streams.

use std::{
    future::poll_fn,
    io::{self, IoSlice},
    mem::MaybeUninit,
    pin::Pin,
    task::{Poll, ready},
};

use async_trait::async_trait;
use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf, ReadHalf, WriteHalf, split};

use crate::{Duplex, Sink, Source};

/// Bytes of one read. TLS returns a record of at most 16 KiB; another runtime's connection has none.
const READ: usize = 64 << 10;

/// The two directions of a connection.
pub(crate) fn duplex<I>(io: I) -> Duplex
where
    I: AsyncRead + AsyncWrite + Send + 'static,
{
    let (reader, writer) = split(io);
    Duplex {
        source: Box::new(IoSource(reader)),
        sink: Box::new(IoSink(Some(writer))),
    }
}

struct IoSource<I>(ReadHalf<I>);

#[async_trait]
impl<I: AsyncRead + Send> Source for IoSource<I> {
    async fn read(&mut self) -> io::Result<Option<Bytes>> {
        poll_fn(|context| {
            // On the stack, and only during a poll: a connection that waits needs no buffer.
            let mut bytes = [MaybeUninit::<u8>::uninit(); READ];
            let mut buffer = ReadBuf::uninit(&mut bytes);
            ready!(Pin::new(&mut self.0).poll_read(context, &mut buffer))?;
            let filled = buffer.filled();
            Poll::Ready(Ok(
                (!filled.is_empty()).then(|| Bytes::copy_from_slice(filled))
            ))
        })
        .await
    }
}

struct IoSink<I>(Option<WriteHalf<I>>);

#[async_trait]
impl<I: AsyncWrite + Send> Sink for IoSink<I> {
    async fn write(&mut self, bytes: Bytes) -> io::Result<()> {
        let writer = self.0.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        writer.write_all(&bytes).await?;
        writer.flush().await
    }

    async fn write_pieces(&mut self, pieces: &[Bytes]) -> io::Result<()> {
        let writer = self.0.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut slices: Vec<_> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
        let mut left = slices.as_mut_slice();
        // Drops empty ones at the beginning: nothing would be written of them.
        IoSlice::advance_slices(&mut left, 0);
        while !left.is_empty() {
            let written = writer.write_vectored(left).await?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            IoSlice::advance_slices(&mut left, written);
        }
        writer.flush().await
    }

    async fn close(&mut self) -> io::Result<()> {
        match self.0.take() {
            Some(mut writer) => writer.shutdown().await,
            None => Ok(()),
        }
    }
}
