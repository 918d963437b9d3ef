//! Connections to registries, token servers and storage, shared by the pulls that go on. Made when
//! the first one begins and given up with the last one, so that an idle node has none.

use std::{collections::HashMap, sync::PoisonError, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use rubelet_base::ErrorChain;
use rustls::RootCertStore;
use tokio::{sync::Mutex, time::timeout};

use super::{
    body::Body,
    origin::{Origin, host_of, is_loopback},
    proxy::Route,
    tls::{self, Identity},
};
use crate::{ImageSettings, Limits, Proxy, PullError, PullErrorKind, hosts::HostSettings};

type HttpClient = Client<HttpsConnector<Route>, Full<Bytes>>;

/// Another request may use a connection that was idle for so long.
const IDLE: Duration = Duration::from_secs(15);
/// How much of an answer waits to be read, in bytes.
const READ_BUFFER: usize = 64 * 1024;
const USER_AGENT: HeaderValue =
    HeaderValue::from_static(concat!("rubelet/", env!("CARGO_PKG_VERSION")));

/// What all pulls that go on share.
pub(crate) struct Transport {
    /// The authorities that are believed.
    roots: RootCertStore,
    /// For registries of which nothing is said.
    clients: Clients,
    insecure: Vec<String>,
    proxy: Proxy,
    limits: Limits,
    /// How registries with a choice are spoken to: a lock each, so that one that is slow to answer
    /// keeps nobody else waiting.
    origins: std::sync::Mutex<HashMap<String, Known>>,
}

pub(super) type Known = std::sync::Arc<Mutex<Option<Origin>>>;

/// Connections under the same rules.
#[derive(Clone)]
pub(super) struct Clients {
    checked: HttpClient,
    /// Takes any certificate.
    any: HttpClient,
}

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
        let roots = tls::roots(settings.authorities.as_deref())?;
        Ok(Self {
            clients: Clients::new(roots.clone(), None, &settings.proxy, limits.connect),
            roots,
            insecure: settings.insecure_registries.clone(),
            proxy: settings.proxy.clone(),
            limits,
            origins: std::sync::Mutex::default(),
        })
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Whether plain HTTP and any certificate will do.
    pub(super) fn is_insecure(&self, authority: &str) -> bool {
        is_loopback(authority) || self.is_called_insecure(authority)
    }

    /// Whether the settings say so.
    pub(super) fn is_called_insecure(&self, authority: &str) -> bool {
        let host = host_of(authority);
        let mut named = self.insecure.iter();
        named.any(|name| name == authority || name == host)
    }

    /// What is known of how the registry at `authority` is spoken to.
    pub(super) fn known(&self, authority: &str) -> Known {
        let origins = self.origins.lock();
        let mut origins = origins.unwrap_or_else(PoisonError::into_inner);
        origins.entry(authority.to_owned()).or_default().clone()
    }

    /// Connections to a host. Reads the certificates that its settings name; blocks.
    pub(super) fn clients(
        &self,
        settings: &HostSettings,
        connect: Duration,
    ) -> Result<Clients, PullError> {
        let is_usual = settings.authorities.is_empty() && settings.client.is_none();
        if is_usual && connect == self.limits.connect {
            return Ok(self.clients.clone());
        }
        let mut roots = self.roots.clone();
        for file in &settings.authorities {
            tls::add_named(&mut roots, file)?;
        }
        let identity = settings.client.as_ref().map(tls::identity).transpose()?;
        Ok(Clients::new(roots, identity.as_ref(), &self.proxy, connect))
    }
}

impl Clients {
    fn new(
        roots: RootCertStore,
        identity: Option<&Identity>,
        proxy: &Proxy,
        connect: Duration,
    ) -> Self {
        let client = |tls| {
            let mut tcp = HttpConnector::new();
            tcp.enforce_http(false);
            tcp.set_nodelay(true);
            tcp.set_connect_timeout(Some(connect));
            let https = HttpsConnectorBuilder::new()
                .with_tls_config(tls)
                .https_or_http()
                .enable_http1()
                .wrap_connector(Route::new(tcp, proxy));
            Client::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(IDLE)
                .http1_max_buf_size(READ_BUFFER)
                .build(https)
        };
        Self {
            checked: client(tls::checked(roots, identity)),
            any: client(tls::any(identity)),
        }
    }

    /// Sends a request and waits for the head of the answer.
    pub(super) async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
        takes_any: bool,
        patience: Duration,
        limits: &Limits,
    ) -> Result<Answer, PullError> {
        let authority = request.uri().authority().map(ToString::to_string);
        let authority = authority.unwrap_or_default();
        let client = if takes_any { &self.any } else { &self.checked };
        request.headers_mut().insert(header::USER_AGENT, USER_AGENT);
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
            body: Body::new(body, limits, authority),
        })
    }
}

pub(super) fn unsent(authority: &str, error: http::Error) -> PullError {
    let message = format!("no request to {authority} can be made");
    PullError::because(PullErrorKind::InvalidArgument, message, error)
}
