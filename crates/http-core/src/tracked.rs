//! The body of a response, which keeps its request in progress until it is sent.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use hyper::body::{Body as HttpBody, Frame, SizeHint};

use crate::{activity::OpenRequest, respond::Body};

/// A body, and guards that are dropped with it.
pub struct TrackedBody<G> {
    body: Body,
    open: Option<OpenRequest>,
    _guards: Option<G>,
}

impl<G> TrackedBody<G> {
    /// `open` is `None` if sending the body must not keep the connection in use.
    #[must_use]
    pub fn new(body: Body, open: Option<OpenRequest>, guards: G) -> Self {
        Self {
            body,
            open,
            _guards: Some(guards),
        }
    }

    /// A body without guards.
    #[must_use]
    pub fn untracked(body: Body) -> Self {
        Self {
            body,
            open: None,
            _guards: None,
        }
    }
}

impl<G: Unpin> HttpBody for TrackedBody<G> {
    type Data = <Body as HttpBody>::Data;
    type Error = <Body as HttpBody>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if let Some(open) = &mut self.open {
            open.pulled(frame.is_pending());
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
