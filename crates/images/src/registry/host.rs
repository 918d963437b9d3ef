//! A host of a registry: the registry itself or a mirror.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, header};

use super::{
    OfferedCredentials, RawManifest,
    authorize::{Authorizer, encode},
    body::ResponseBody,
    error_response,
    peer::HostConnection,
    redirect,
    transport::{RegistryResponse, Transport},
};
use crate::{
    Digest, PullError, PullErrorKind, Reference,
    hosts::{Capabilities, HostSettings},
    manifest::{Descriptor, MANIFEST_TYPES},
};

pub(super) struct Host {
    peer: HostConnection,
    /// The path before the repository.
    base: String,
    repository: String,
    /// The query `ns=REGISTRY`: a mirror of several registries needs it.
    query: String,
    capabilities: Capabilities,
    authorizer: Authorizer,
    /// The error after which it is skipped for the rest of the pull.
    down: OnceLock<PullError>,
}

impl Host {
    /// Reads certificates. Blocks.
    pub(super) fn new(
        transport: &Arc<Transport>,
        settings: &HostSettings,
        reference: &Reference,
        shown: &OfferedCredentials,
        is_last: bool,
    ) -> Result<Self, PullError> {
        let api_host = reference.api_host();
        let peer = HostConnection::new(Arc::clone(transport), settings, api_host, is_last)?;
        let base = settings.url.as_ref().map(|url| url.path.clone());
        let is_registry = [api_host, reference.registry()].contains(&peer.authority());
        let query = match is_registry {
            true => String::new(),
            false => format!("?{}", encode(&[("ns", reference.registry())])),
        };
        let credentials = shown.credentials.clone();
        let credentials = credentials.filter(|_| is_registry || shown.to_mirrors);
        let scope = format!("repository:{}:pull", reference.repository());
        Ok(Self {
            peer,
            base: base.unwrap_or_else(|| "/v2".to_owned()),
            repository: reference.repository().to_owned(),
            query,
            capabilities: settings.capabilities,
            authorizer: Authorizer::new(credentials, scope),
            down: OnceLock::new(),
        })
    }

    pub(super) fn name(&self) -> String {
        self.peer.authority().to_owned()
    }

    /// Reports whether its capabilities allow pulls, and with `resolve` also tags.
    pub(super) fn may(&self, resolve: bool) -> bool {
        self.capabilities.pull && (self.capabilities.resolve || !resolve)
    }

    pub(super) fn down(&self) -> Option<PullError> {
        self.down.get().cloned()
    }

    /// Records an error that makes it unusable for the rest of the pull.
    pub(super) fn note(&self, error: &PullError) {
        if !matches!(
            error.kind(),
            PullErrorKind::NotFound | PullErrorKind::Refused
        ) {
            // The first error is kept.
            let _ = self.down.set(error.clone());
        }
    }

    pub(super) async fn manifest(
        &self,
        tag_or_digest: &str,
        expected: Option<&Digest>,
    ) -> Result<RawManifest, PullError> {
        let path = format!("{}/manifests/{tag_or_digest}", self.repository);
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
        let most = self.peer.limits().manifest_bytes;
        let bytes = answer.body.all(most, "manifest").await?;
        for digest in expected.into_iter().chain(&claimed) {
            if !digest.is_of(&bytes) {
                let message = format!("the received manifest does not match its digest {digest}");
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

    pub(super) async fn small_blob(&self, descriptor: &Descriptor) -> Result<Bytes, PullError> {
        let body = self.blob(descriptor).await?;
        let bytes = body.all(descriptor.size, "image configuration").await?;
        if !descriptor.digest.is_of(&bytes) {
            let message = format!(
                "the received blob does not match its digest {}",
                descriptor.digest
            );
            return Err(PullError::new(PullErrorKind::Refused, message));
        }
        Ok(bytes)
    }

    pub(super) async fn blob(&self, descriptor: &Descriptor) -> Result<ResponseBody, PullError> {
        let path = format!("{}/blobs/{}", self.repository, descriptor.digest);
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

    /// Reports whether a HEAD request with these credentials finds the blob with the expected size.
    pub(super) async fn has(&self, descriptor: &Descriptor) -> bool {
        let path = format!("{}/blobs/{}", self.repository, descriptor.digest);
        match self.ask(Method::HEAD, &path, None).await {
            Ok(answer) => answer
                .headers
                .get(header::CONTENT_LENGTH)
                .is_none_or(|length| {
                    let length = length.to_str().ok().and_then(|text| text.parse().ok());
                    length == Some(descriptor.size)
                }),
            Err(_) => false,
        }
    }

    async fn get(
        &self,
        path: &str,
        accept: Option<HeaderValue>,
    ) -> Result<RegistryResponse, PullError> {
        self.ask(Method::GET, path, accept).await
    }

    /// Sends a request, authenticates on a challenge, and follows redirects.
    async fn ask(
        &self,
        method: Method,
        path: &str,
        accept: Option<HeaderValue>,
    ) -> Result<RegistryResponse, PullError> {
        let origin = self.peer.origin().await?;
        let url = origin.url(&format!("{}/{path}{}", self.base, self.query));
        let patience = self.peer.patience(accept.is_none());
        let mut challenges = 0;
        loop {
            let shown = self.authorizer.shown().await;
            let ask = redirect::RegistryRequest {
                method: method.clone(),
                url: url.clone(),
                accept: accept.clone(),
                authorization: shown.clone(),
                patience,
            };
            let (answer, is_registry) = redirect::follow(&self.peer, ask).await?;
            if answer.status.is_success() {
                return Ok(answer);
            }
            // A token may expire during a long pull; two refusals in a row are final.
            if answer.status == StatusCode::UNAUTHORIZED && is_registry && challenges < 2 {
                challenges += 1;
                let asked = (&self.peer, &origin);
                if self
                    .authorizer
                    .renew(asked, &answer, shown.as_ref())
                    .await?
                {
                    continue;
                }
            }
            return Err(error_response::refusal(&method, &url, answer).await);
        }
    }
}
