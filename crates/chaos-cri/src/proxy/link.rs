//! The connection to the runtime, as calls use it.

use std::{future::pending, sync::Arc};

use http::{Request, Response};
use hyper::{body::Incoming, client::conn::http2 as client};

use super::{
    Shared,
    body::{Body, BoxError},
    gate::Gate,
};

/// What the calls of one connection share.
pub(super) struct Link {
    pub(super) shared: Arc<Shared>,
    pub(super) gate: Gate,
    pub(super) runtime: client::SendRequest<Body>,
}

impl Link {
    /// Hands a request on. Fails only with a stream that the runtime has reset; the loss of the
    /// connection ends this one too, and the future with it.
    pub(super) async fn forward(
        &self,
        request: Request<Body>,
    ) -> Result<Response<Incoming>, BoxError> {
        match self.runtime.clone().send_request(request).await {
            Ok(answer) => Ok(answer),
            Err(error) if is_reset(&error) => Err(error.into()),
            Err(error) => {
                tracing::debug!(%error, "Lost the connection to the runtime");
                pending().await
            }
        }
    }
}

/// Whether the runtime has ended one stream, and not the connection.
pub(super) fn is_reset(error: &hyper::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            return error.is_reset();
        }
        cause = error.source();
    }
    false
}
