//! A request body with files, and what has been sent of it.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame};
use tokio::sync::mpsc;

use super::super::agent::RequestBody;

/// A request body from a channel; reports what has been sent.
pub(super) struct Upload {
    pieces: mpsc::Receiver<Bytes>,
    seen: mpsc::UnboundedSender<Bytes>,
}

impl Upload {
    pub(super) fn body(
        pieces: mpsc::Receiver<Bytes>,
        seen: mpsc::UnboundedSender<Bytes>,
    ) -> RequestBody {
        Self { pieces, seen }.boxed_unsync()
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let piece = ready!(self.pieces.poll_recv(context));
        if let Some(piece) = &piece {
            // Only the progress bar depends on it.
            let _ = self.seen.send(piece.clone());
        }
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }
}
