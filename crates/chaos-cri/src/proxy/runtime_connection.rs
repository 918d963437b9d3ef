//! A connection to the runtime, for forwarding calls.

use std::{future::pending, sync::Arc};

use http::{Request, Response};
use hyper::{body::Incoming, client::conn::http2 as client};

use super::{
    ProxyState,
    body::{Body, BoxError},
    freeze_state::FreezeState,
};

/// State that the calls of one connection share.
pub(super) struct RuntimeConnection {
    pub(super) shared: Arc<ProxyState>,
    pub(super) freeze_state: FreezeState,
    pub(super) runtime: client::SendRequest<Body>,
}

impl RuntimeConnection {
    /// Forwards a request. Fails only if the runtime resets the stream; the loss of the connection
    /// ends the client's connection too, and drops this future.
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

/// Whether the runtime has reset one stream, and not closed the connection.
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
