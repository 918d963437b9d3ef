//! Tokio connections as streams.

use std::{
    future::poll_fn,
    io::{self, IoSlice},
    mem::MaybeUninit,
    pin::Pin,
    task::{Poll, ready},
};

use async_trait::async_trait;
use bytes::{Buf as _, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf, ReadHalf, WriteHalf, split};

use crate::{Duplex, Sink, Source};

/// Bytes of one read: a TLS record.
const READ: usize = 16 << 10;

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

    async fn write_both(&mut self, mut head: Bytes, mut body: Bytes) -> io::Result<()> {
        let writer = self.0.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        while !head.is_empty() {
            let slices = [IoSlice::new(&head), IoSlice::new(&body)];
            let written = writer.write_vectored(&slices).await?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            let of_head = written.min(head.len());
            head.advance(of_head);
            body.advance(written - of_head);
        }
        self.write(body).await
    }

    async fn close(&mut self) -> io::Result<()> {
        match self.0.take() {
            Some(mut writer) => writer.shutdown().await,
            None => Ok(()),
        }
    }
}
