//! One GET of a manifest URL, redirects included.

use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Empty, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use rustls::{ClientConfig, RootCertStore, crypto::aws_lc_rs, pki_types::CertificateDer};

use super::{
    redirect::{MAX_REQUESTS, RedirectChain, is_redirect},
    target::{Target, TargetError},
};
use crate::state::MAX_MANIFEST_BYTES;

/// Timeout of a poll as a whole.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);

/// Trusted certificate authorities.
#[derive(Debug, Clone, Default)]
pub enum Roots {
    /// Those of this machine, read when the first secure request is made. `SSL_CERT_FILE` and
    /// `SSL_CERT_DIR` count.
    #[default]
    System,
    /// These certificates, in DER.
    Certificates(Vec<Vec<u8>>),
}

/// A failed fetch of a URL.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error("no response within 10s")]
    Timeout,
    #[error("the request failed")]
    Request(#[source] hyper_util::client::legacy::Error),
    #[error("the server answered {0}")]
    Status(StatusCode),
    #[error("redirected more than {} times", MAX_REQUESTS - 1)]
    TooManyRedirects,
    #[error("redirected to an unusable URL")]
    Redirect(#[source] TargetError),
    #[error("the response is larger than 10 MiB")]
    TooLarge,
    #[error("the response was truncated")]
    Body(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("no certificate authorities for HTTPS; install ca-certificates")]
    Roots(#[source] io::Error),
    #[error("invalid configured certificate authority")]
    Tls(#[source] rustls::Error),
}

/// The result of a fetch.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FetchResult {
    /// The content.
    Body(Bytes),
    /// The server responded that the content is unchanged since the last fetch.
    NotModified,
}

type Http = Client<HttpConnector, Empty<Bytes>>;
type Https = Client<HttpsConnector<HttpConnector>, Empty<Bytes>>;

/// Fetches one URL repeatedly.
pub(super) struct Fetcher {
    target: Target,
    headers: HeaderMap,
    roots: Roots,
    http: Http,
    /// Created on demand: the certificate authorities use memory.
    https: Option<Https>,
    etag: Option<HeaderValue>,
}

impl Fetcher {
    /// `headers` are sent with each request and override the defaults.
    pub(super) fn new(target: Target, headers: HeaderMap, roots: Roots) -> Self {
        let http = Client::builder(TokioExecutor::new()).build_http();
        Self {
            target,
            headers,
            roots,
            http,
            https: None,
            etag: None,
        }
    }

    /// Fetches once.
    pub(super) async fn fetch(&mut self) -> Result<FetchResult, FetchError> {
        tokio::time::timeout(TIMEOUT, self.get())
            .await
            .unwrap_or(Err(FetchError::Timeout))
    }

    async fn get(&mut self) -> Result<FetchResult, FetchError> {
        let conditional = !self.headers.contains_key(header::IF_NONE_MATCH);
        let mut chain = RedirectChain::new(self.target.clone(), self.request_headers(conditional));
        let mut target = self.target.clone();
        let mut headers = chain.headers().clone();
        for _ in 0..MAX_REQUESTS {
            let response = self.send(&target, headers).await?;
            let location = response.headers().get(header::LOCATION);
            let location = location.and_then(|location| location.to_str().ok());
            match (response.status(), location) {
                (StatusCode::OK, _) => return self.body(response).await,
                (StatusCode::NOT_MODIFIED, _) if conditional && self.etag.is_some() => {
                    return Ok(FetchResult::NotModified);
                }
                (status, Some(location)) if is_redirect(status) => {
                    let next = target.join(location).map_err(FetchError::Redirect)?;
                    headers = chain.follow(&target, &next).clone();
                    if let Some(authorization) = authorization(&next) {
                        headers.insert(header::AUTHORIZATION, authorization);
                    }
                    target = next;
                }
                (status, _) => return Err(FetchError::Status(status)),
            }
        }
        Err(FetchError::TooManyRedirects)
    }

    fn request_headers(&self, conditional: bool) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let agent = concat!("rubelet/", env!("CARGO_PKG_VERSION"));
        headers.insert(header::USER_AGENT, HeaderValue::from_static(agent));
        headers.extend(authorization(&self.target).map(|value| (header::AUTHORIZATION, value)));
        if let Some(etag) = self.etag.clone().filter(|_| conditional) {
            headers.insert(header::IF_NONE_MATCH, etag);
        }
        for name in self.headers.keys() {
            headers.remove(name);
            for value in self.headers.get_all(name) {
                headers.append(name, value.clone());
            }
        }
        headers
    }

    async fn send(
        &mut self,
        target: &Target,
        headers: HeaderMap,
    ) -> Result<Response<Incoming>, FetchError> {
        let mut request = Request::new(Empty::new());
        *request.uri_mut() = target.uri.clone();
        *request.headers_mut() = headers;
        let response = if target.is_https() {
            let https = match &self.https {
                Some(https) => https,
                None => self.https.insert(https(&self.roots)?),
            };
            https.request(request)
        } else {
            self.http.request(request)
        };
        response.await.map_err(FetchError::Request)
    }

    async fn body(&mut self, response: Response<Incoming>) -> Result<FetchResult, FetchError> {
        let etag = response.headers().get(header::ETAG).cloned();
        let limit = usize::try_from(MAX_MANIFEST_BYTES).expect("10 MiB can be counted");
        let body = Limited::new(response.into_body(), limit)
            .collect()
            .await
            .map_err(|error| {
                if error.is::<LengthLimitError>() {
                    FetchError::TooLarge
                } else {
                    FetchError::Body(error)
                }
            })?;
        self.etag = etag;
        Ok(FetchResult::Body(body.to_bytes()))
    }
}

fn authorization(target: &Target) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(target.authorization()?).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn https(roots: &Roots) -> Result<Https, FetchError> {
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(FetchError::Tls)?;
    let config = match roots {
        Roots::System => config.with_native_roots().map_err(FetchError::Roots)?,
        Roots::Certificates(certificates) => {
            let mut store = RootCertStore::empty();
            for certificate in certificates {
                let certificate = CertificateDer::from(certificate.clone());
                store.add(certificate).map_err(FetchError::Tls)?;
            }
            config.with_root_certificates(store)
        }
    };
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(config.with_no_client_auth())
        .https_only()
        .enable_http1()
        .build();
    Ok(Client::builder(TokioExecutor::new()).build(connector))
}
