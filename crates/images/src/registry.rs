//! The client of registries: connections, credentials, redirects, manifests and blobs.
//!
//! A [`Session`] serves one pull. It speaks HTTPS, to registries on loopback and those that the
//! settings call insecure also with any certificate or plain HTTP, whichever they answer to.
//! Credentials go to the registry and, where it says so, to its token server; a redirect to another
//! host is followed without them. Nothing is tried again: back-off is the caller's.

mod answer;
mod authorize;
mod body;
mod challenge;
mod origin;
mod proxy;
mod redirect;
mod tls;
mod transport;

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, header};

use self::{authorize::Authorizer, origin::Origin, transport::Answer};
pub(crate) use self::{body::Body, transport::Transport};
use crate::{
    Credentials, Digest, PullError, PullErrorKind, Reference,
    manifest::{Descriptor, MANIFEST_TYPES},
};

/// One pull's view of a registry.
pub(crate) struct Session {
    transport: Arc<Transport>,
    origin: Origin,
    repository: String,
    authorizer: Authorizer,
}

/// A manifest or index as the registry gave it.
pub(crate) struct RawManifest {
    pub(crate) bytes: Bytes,
    pub(crate) digest: Digest,
    pub(crate) media_type: Option<String>,
}

impl Session {
    /// Finds out how the registry wants to be spoken to, if there is a choice.
    pub(crate) async fn open(
        transport: Arc<Transport>,
        reference: &Reference,
        credentials: Option<Credentials>,
    ) -> Result<Self, PullError> {
        let origin = transport.origin(reference.api_host()).await?;
        let scope = format!("repository:{}:pull", reference.repository());
        Ok(Self {
            authorizer: Authorizer::new(credentials, scope),
            transport,
            origin,
            repository: reference.repository().to_owned(),
        })
    }

    /// The manifest or index with this tag or digest.
    pub(crate) async fn manifest(
        &self,
        tag_or_digest: &str,
        expected: Option<&Digest>,
    ) -> Result<RawManifest, PullError> {
        let path = format!("/v2/{}/manifests/{tag_or_digest}", self.repository);
        let accept = HeaderValue::from_str(&MANIFEST_TYPES.join(", ")).ok();
        let answer = self.get(&path, accept).await?;
        let text = |name| {
            answer
                .headers
                .get(name)
                .and_then(|value| value.to_str().ok())
        };
        let media_type = text(header::CONTENT_TYPE).map(str::to_owned);
        let claimed = text(header::HeaderName::from_static("docker-content-digest"));
        let claimed = claimed.and_then(|text| text.parse::<Digest>().ok());
        let most = self.transport.limits().manifest_bytes;
        let bytes = answer.body.all(most, "manifest").await?;
        for digest in expected.into_iter().chain(&claimed) {
            if !digest.is_of(&bytes) {
                let message = format!("the manifest that came is not {digest}");
                return Err(PullError::new(PullErrorKind::Refused, message));
            }
        }
        let digest = expected.cloned().unwrap_or_else(|| Digest::of(&bytes));
        Ok(RawManifest {
            bytes,
            digest,
            media_type,
        })
    }

    /// All of a small blob, checked.
    pub(crate) async fn small_blob(
        &self,
        descriptor: &Descriptor,
        most: u64,
    ) -> Result<Bytes, PullError> {
        if descriptor.size > most {
            let message = format!(
                "the image's configuration has {} bytes, more than {most}",
                descriptor.size
            );
            return Err(PullError::new(PullErrorKind::Refused, message));
        }
        let body = self.blob(descriptor).await?;
        let bytes = body.all(descriptor.size, "image configuration").await?;
        if !descriptor.digest.is_of(&bytes) {
            let message = format!("the blob that came is not {}", descriptor.digest);
            return Err(PullError::new(PullErrorKind::Refused, message));
        }
        Ok(bytes)
    }

    /// A blob, unchecked.
    pub(crate) async fn blob(&self, descriptor: &Descriptor) -> Result<Body, PullError> {
        let path = format!("/v2/{}/blobs/{}", self.repository, descriptor.digest);
        let answer = self.get(&path, None).await?;
        match answer.body.announced() {
            Some(length) if length != descriptor.size => {
                let message = format!(
                    "the blob {} has {length} bytes, the manifest says {}",
                    descriptor.digest, descriptor.size
                );
                Err(PullError::new(PullErrorKind::Refused, message))
            }
            _ => Ok(answer.body),
        }
    }

    /// Asks the registry, says who asks when it wants to know, and follows where it leads.
    async fn get(&self, path: &str, accept: Option<HeaderValue>) -> Result<Answer, PullError> {
        let url = self.origin.url(path);
        let mut challenges = 0;
        loop {
            let shown = self.authorizer.shown().await;
            let ask = redirect::Ask {
                url: url.clone(),
                accept: accept.clone(),
                authorization: shown.clone(),
            };
            let (answer, is_registry) = redirect::follow(&self.transport, ask).await?;
            if answer.status.is_success() {
                return Ok(answer);
            }
            // A token may expire during a long pull; two refusals in a row are final.
            if answer.status == StatusCode::UNAUTHORIZED && is_registry && challenges < 2 {
                challenges += 1;
                let asked = (&self.transport, &self.origin);
                if self
                    .authorizer
                    .renew(asked, &answer, shown.as_ref())
                    .await?
                {
                    continue;
                }
            }
            return Err(answer::refusal(&Method::GET, &url, answer).await);
        }
    }
}
