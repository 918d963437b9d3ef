//! Connections to registries, token servers and storage, shared by the current pulls. Opened by the
//! first pull and closed with the last one, so that an idle node has none.

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
use rustls::RootCertStore;
use tokio::{sync::Mutex, time::timeout};

use super::{
    body::ResponseBody,
    origin::{Origin, host_of, is_loopback},
    proxy::ProxyConnector,
    tls::{self, Identity},
};
use crate::{ImageSettings, Limits, Proxy, PullError, PullErrorKind, hosts::HostSettings};

type HttpClient = Client<HttpsConnector<ProxyConnector>, Full<Bytes>>;

/// Idle time after which a connection is closed.
const IDLE: Duration = Duration::from_secs(15);
/// Read buffer of a response, in bytes.
const READ_BUFFER: usize = 64 * 1024;
const USER_AGENT: HeaderValue =
    HeaderValue::from_static(concat!("rubelet/", env!("CARGO_PKG_VERSION")));

/// Shared by all current pulls.
pub(crate) struct Transport {
    /// The trusted certificate authorities.
    roots: RootCertStore,
    /// Connections to registries without settings.
    clients: HttpClients,
    insecure: Vec<String>,
    proxy: Proxy,
    limits: Limits,
    /// The origins of registries that allow several: a lock each, so that a slow one does not delay
    /// others.
    origins: parking_lot::Mutex<HashMap<String, SharedOrigin>>,
}

pub(super) type SharedOrigin = std::sync::Arc<Mutex<Option<Origin>>>;

/// Connections with the same settings.
#[derive(Clone)]
pub(super) struct HttpClients {
    checked: HttpClient,
    /// Does not verify certificates.
    any: HttpClient,
}

/// The head of a response; the body follows.
pub(super) struct RegistryResponse {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: ResponseBody,
}

impl Transport {
    /// Reads the certificate authorities. Blocks.
    pub(crate) fn new(settings: &ImageSettings) -> Result<Self, PullError> {
        let limits = settings.limits;
        let roots = tls::roots(settings.authorities.as_deref())?;
        Ok(Self {
            clients: HttpClients::new(roots.clone(), None, &settings.proxy, limits.connect),
            roots,
            insecure: settings.insecure_registries.clone(),
            proxy: settings.proxy.clone(),
            limits,
            origins: parking_lot::Mutex::default(),
        })
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Reports whether plain HTTP and unverified certificates are allowed.
    pub(super) fn is_insecure(&self, authority: &str) -> bool {
        is_loopback(authority) || self.is_called_insecure(authority)
    }

    /// Reports whether the settings list it as insecure.
    pub(super) fn is_called_insecure(&self, authority: &str) -> bool {
        let host = host_of(authority);
        let mut named = self.insecure.iter();
        named.any(|name| name == authority || name == host)
    }

    /// The scheme and TLS mode that the registry at `authority` uses, once known.
    pub(super) fn known(&self, authority: &str) -> SharedOrigin {
        let mut origins = self.origins.lock();
        origins.entry(authority.to_owned()).or_default().clone()
    }

    /// Connections to a host. Reads the certificates that its settings name; blocks.
    pub(super) fn clients(
        &self,
        settings: &HostSettings,
        connect: Duration,
    ) -> Result<HttpClients, PullError> {
        let is_usual = settings.authorities.is_empty() && settings.client.is_none();
        if is_usual && connect == self.limits.connect {
            return Ok(self.clients.clone());
        }
        let mut roots = self.roots.clone();
        for file in &settings.authorities {
            tls::add_named(&mut roots, file)?;
        }
        let identity = settings.client.as_ref().map(tls::identity).transpose()?;
        Ok(HttpClients::new(
            roots,
            identity.as_ref(),
            &self.proxy,
            connect,
        ))
    }
}

impl HttpClients {
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
                .wrap_connector(ProxyConnector::new(tcp, proxy));
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

    /// Sends a request and waits for the head of the response.
    pub(super) async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
        takes_any: bool,
        patience: Duration,
        limits: &Limits,
    ) -> Result<RegistryResponse, PullError> {
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
            // The client's own words are about itself: "client error (Connect)".
            let cause = std::error::Error::source(&error).unwrap_or(&error);
            let message = format!("cannot reach {authority}: {}", ErrorChain(cause));
            PullError::new(PullErrorKind::Unavailable, message)
        })?;
        let (head, body) = answer.into_parts();
        Ok(RegistryResponse {
            status: head.status,
            headers: head.headers,
            body: ResponseBody::new(body, limits, authority),
        })
    }
}

pub(super) fn unsent(authority: &str, error: http::Error) -> PullError {
    let message = format!("cannot build a request to {authority}");
    PullError::because(PullErrorKind::InvalidArgument, message, error)
}
