//! Follows redirects, without credentials for other hosts.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, header};
use http_body_util::Full;

use super::{
    hop::hop,
    origin,
    peer::HostConnection,
    transport::{RegistryResponse, unsent},
};
use crate::{PullError, PullErrorKind};

/// Registries redirect to storage, which may redirect to a nearer mirror.
const MAX_REDIRECTS: usize = 5;

/// A request, as its redirects repeat it.
pub(super) struct RegistryRequest {
    /// GET or HEAD.
    pub(super) method: Method,
    pub(super) url: String,
    pub(super) accept: Option<HeaderValue>,
    pub(super) authorization: Option<HeaderValue>,
    /// Timeout of each response.
    pub(super) patience: Duration,
}

/// The last response, and whether it is from the origin of the first request.
pub(super) async fn follow(
    peer: &HostConnection,
    mut ask: RegistryRequest,
) -> Result<(RegistryResponse, bool), PullError> {
    let (_, start) = origin::parse(&ask.url, "the address of the registry")?;
    let mut here = start.clone();
    for _ in 0..=MAX_REDIRECTS {
        let mut request = Request::builder().method(ask.method.clone()).uri(&ask.url);
        if let Some(accept) = &ask.accept {
            request = request.header(header::ACCEPT, accept);
        }
        if let Some(authorization) = &ask.authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        let request = request.body(Full::<Bytes>::default());
        let request = request.map_err(|error| unsent(here.authority(), error))?;
        let answer = peer.send(request, ask.patience).await?;
        if !matches!(answer.status.as_u16(), 301 | 302 | 303 | 307 | 308) {
            return Ok((answer, here == start));
        }
        let location = answer.headers.get(header::LOCATION);
        let location = location
            .and_then(|value| value.to_str().ok())
            .ok_or_else(|| {
                let message = format!("redirect of {} has no Location", here.authority());
                PullError::new(PullErrorKind::Unavailable, message)
            })?;
        let hop = hop(&here, &ask.url, location, |authority| {
            peer.is_insecure(authority)
        })?;
        if !hop.keeps_credentials {
            ask.authorization = None;
        }
        ask.url = hop.url;
        here = hop.origin;
    }
    let message = format!("too many redirects, starting at {}", start.authority());
    Err(PullError::new(PullErrorKind::Unavailable, message))
}
