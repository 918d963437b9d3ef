//! Following redirects, without showing credentials to anybody else.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, header};
use http_body_util::Full;

use super::{
    hop::hop,
    origin,
    peer::Peer,
    transport::{Answer, unsent},
};
use crate::{PullError, PullErrorKind};

/// Registries send to storage, and that perhaps to a nearer one.
const MAX_REDIRECTS: usize = 5;

/// What to ask for.
pub(super) struct Ask {
    /// GET or HEAD.
    pub(super) method: Method,
    pub(super) url: String,
    pub(super) accept: Option<HeaderValue>,
    pub(super) authorization: Option<HeaderValue>,
    /// How long each answer may take.
    pub(super) patience: Duration,
}

/// The last answer, and whether it is from where the first one was asked.
pub(super) async fn follow(peer: &Peer, mut ask: Ask) -> Result<(Answer, bool), PullError> {
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
                let message = format!("{} sends elsewhere without saying where", here.authority());
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
    let message = format!("{} sends round in circles", start.authority());
    Err(PullError::new(PullErrorKind::Unavailable, message))
}
