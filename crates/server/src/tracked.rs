//! The body of a response, which keeps its request in progress until it is sent.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use hyper::body::{Body as HttpBody, Frame, SizeHint};

use crate::{activity::OpenRequest, audit::AuditedRequest, respond::Body, secure::Observed};

/// A body, and guards that are dropped with it.
pub(crate) struct TrackedBody {
    body: Body,
    open: Option<OpenRequest>,
    _observed: Option<Observed>,
    _audited: Option<AuditedRequest>,
}

impl TrackedBody {
    /// `open` is `None` if sending the body must not keep the connection in use.
    pub(crate) fn new(
        body: Body,
        open: Option<OpenRequest>,
        observed: Option<Observed>,
        audited: Option<AuditedRequest>,
    ) -> Self {
        Self {
            body,
            open,
            _observed: observed,
            _audited: audited,
        }
    }
}

impl TrackedBody {
    /// A body without guards.
    pub(crate) fn untracked(body: Body) -> Self {
        Self::new(body, None, None, None)
    }
}

impl HttpBody for TrackedBody {
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
