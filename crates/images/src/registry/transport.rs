//! Connections to registries, token servers and storage, shared by the pulls that go on. Made when
//! the first one begins and given up with the last one, so that an idle node has none.

use std::{collections::HashMap, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use rubelet_base::ErrorChain;
use tokio::{sync::Mutex, time::timeout};

use super::{
    body::Body,
    origin::{Origin, host_of, is_loopback},
    proxy::Route,
    tls,
};
use crate::{ImageSettings, Limits, PullError, PullErrorKind};

type HttpClient = Client<HttpsConnector<Route>, Full<Bytes>>;

/// Another request may use a connection that was idle for so long.
const IDLE: Duration = Duration::from_secs(15);
/// How much of an answer waits to be read, in bytes.
const READ_BUFFER: usize = 64 * 1024;
/// A plain server may wait for the end of what it takes for a line.
const TLS_OR_NOT: Duration = Duration::from_secs(5);
const USER_AGENT: HeaderValue =
    HeaderValue::from_static(concat!("rubelet/", env!("CARGO_PKG_VERSION")));

pub(crate) struct Transport {
    checked: HttpClient,
    /// Takes any certificate.
    any: HttpClient,
    insecure: Vec<String>,
    limits: Limits,
    /// How registries with a choice are spoken to: a lock each, so that one that is slow to answer
    /// keeps nobody else waiting.
    origins: std::sync::Mutex<HashMap<String, Known>>,
}

type Known = std::sync::Arc<Mutex<Option<Origin>>>;

/// The head of an answer; the body is still to come.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Body,
}

impl Transport {
    /// Reads the certificate authorities. Blocks.
    pub(crate) fn new(settings: &ImageSettings) -> Result<Self, PullError> {
        let limits = settings.limits;
        let client = |tls| {
            let mut tcp = HttpConnector::new();
            tcp.enforce_http(false);
            tcp.set_nodelay(true);
            tcp.set_connect_timeout(Some(limits.connect));
            let https = HttpsConnectorBuilder::new()
                .with_tls_config(tls)
                .https_or_http()
                .enable_http1()
                .wrap_connector(Route::new(tcp, &settings.proxy));
            Client::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(IDLE)
                .http1_max_buf_size(READ_BUFFER)
                .build(https)
        };
        Ok(Self {
            checked: client(tls::checked(settings.authorities.as_deref())?),
            any: client(tls::any()),
            insecure: settings.insecure_registries.clone(),
            limits,
            origins: std::sync::Mutex::default(),
        })
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Whether plain HTTP and any certificate will do.
    pub(super) fn is_insecure(&self, authority: &str) -> bool {
        let host = host_of(authority);
        let mut named = self.insecure.iter();
        is_loopback(authority) || named.any(|name| name == authority || name == host)
    }

    /// How the registry at `authority` wants to be spoken to.
    pub(super) async fn origin(&self, authority: &str) -> Result<Origin, PullError> {
        let https = Origin::new(true, authority);
        if !self.is_insecure(authority) {
            return Ok(https);
        }
        let known = {
            let mut origins = self.origins.lock();
            let origins = origins.as_mut();
            let Ok(origins) = origins else {
                return Ok(https);
            };
            origins.entry(authority.to_owned()).or_default().clone()
        };
        let mut known = known.lock().await;
        if let Some(origin) = &*known {
            return Ok(origin.clone());
        }
        let probe = |url: String| async move {
            let request = Request::get(url).body(Full::default());
            let request = request.map_err(|error| unsent(authority, error))?;
            self.send(request).await.map(drop)
        };
        let speaks_tls = timeout(TLS_OR_NOT, probe(https.url("/v2/"))).await;
        if matches!(speaks_tls, Ok(Ok(()))) {
            return Ok(known.insert(https).clone());
        }
        let plain = Origin::new(false, authority);
        probe(plain.url("/v2/")).await?;
        Ok(known.insert(plain).clone())
    }

    /// Sends a request and waits for the head of the answer.
    pub(super) async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Answer, PullError> {
        let authority = request.uri().authority().map(ToString::to_string);
        let authority = authority.unwrap_or_default();
        let client = if self.is_insecure(&authority) {
            &self.any
        } else {
            &self.checked
        };
        request.headers_mut().insert(header::USER_AGENT, USER_AGENT);
        let patience = self.limits.connect + self.limits.idle;
        let sent = timeout(patience, client.request(request)).await;
        let sent = sent.map_err(|_| {
            let message = format!("{authority} did not answer within {} s", patience.as_secs());
            PullError::new(PullErrorKind::Unavailable, message)
        })?;
        let answer = sent.map_err(|error| {
            let message = format!("{authority} cannot be asked: {}", ErrorChain(&error));
            PullError::new(PullErrorKind::Unavailable, message)
        })?;
        let (head, body) = answer.into_parts();
        Ok(Answer {
            status: head.status,
            headers: head.headers,
            body: Body::new(body, &self.limits, authority),
        })
    }
}

pub(super) fn unsent(authority: &str, error: http::Error) -> PullError {
    let message = format!("no request to {authority} can be made");
    PullError::because(PullErrorKind::InvalidArgument, message, error)
}
