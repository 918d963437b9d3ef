//! The connection settings of a host: scheme, certificates, headers and timeouts.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Request, header};
use http_body_util::Full;
use tokio::time::timeout;

use super::{
    origin::Origin,
    transport::{HttpClients, RegistryResponse, Transport, unsent},
};
use crate::{Limits, PullError, hosts::HostSettings};

/// Timeout of a TLS handshake: a plain HTTP server may wait for the end of a line.
const TLS_OR_NOT: Duration = Duration::from_secs(5);

/// A host, and the connections to it.
pub(super) struct HostConnection {
    transport: Arc<Transport>,
    clients: HttpClients,
    authority: String,
    /// The scheme and TLS mode, once known.
    https: Option<bool>,
    /// Its certificate is not verified.
    takes_any: bool,
    headers: HeaderMap,
    /// Its response timeout.
    patience: Duration,
}

impl HostConnection {
    /// The host of these settings; the registry itself is at `api_host`. With other hosts after it, it
    /// has a shorter timeout. Reads certificates; blocks.
    pub(super) fn new(
        transport: Arc<Transport>,
        settings: &HostSettings,
        api_host: &str,
        is_last: bool,
    ) -> Result<Self, PullError> {
        let limits = transport.limits();
        let (connect, answer) = match is_last {
            true => (limits.connect, limits.idle),
            false => (limits.mirror_connect, limits.mirror_answer),
        };
        let connect = settings.dial_timeout.unwrap_or(connect);
        let clients = transport.clients(settings, connect)?;
        let has_tls = !settings.authorities.is_empty()
            || settings.client.is_some()
            || settings.skip_verify.is_some();
        let (authority, https, is_lenient) = match &settings.url {
            // If the administrator gives a scheme it is used, also on loopback.
            Some(url) => {
                let is_ambiguous = !url.https && has_tls && !url.authority.ends_with(":80");
                let https = (!is_ambiguous).then_some(url.https);
                let is_lenient = transport.is_called_insecure(&url.authority);
                (url.authority.clone(), https, is_lenient)
            }
            None => {
                let is_lenient = transport.is_insecure(api_host);
                (
                    api_host.to_owned(),
                    (!is_lenient).then_some(true),
                    is_lenient,
                )
            }
        };
        Ok(Self {
            takes_any: settings.skip_verify.unwrap_or(is_lenient),
            patience: connect + answer,
            headers: settings.headers.clone(),
            transport,
            clients,
            authority,
            https,
        })
    }

    pub(super) fn authority(&self) -> &str {
        &self.authority
    }

    pub(super) fn limits(&self) -> &Limits {
        self.transport.limits()
    }

    /// The timeout for small responses; a mirror may have to fetch blobs first.
    pub(super) fn patience(&self, is_blob: bool) -> Duration {
        match is_blob {
            true => self.patience.max(self.limits().idle),
            false => self.patience,
        }
    }

    /// Reports whether plain HTTP and unverified certificates are allowed for `authority`.
    pub(super) fn is_insecure(&self, authority: &str) -> bool {
        match authority == self.authority {
            true => self.takes_any,
            false => self.transport.is_insecure(authority),
        }
    }

    /// Finds the scheme and TLS mode of the host.
    pub(super) async fn origin(&self) -> Result<Origin, PullError> {
        if let Some(https) = self.https {
            return Ok(Origin::new(https, &self.authority));
        }
        let known = self.transport.known(&self.authority);
        let mut known = known.lock().await;
        if let Some(origin) = &*known {
            return Ok(origin.clone());
        }
        let https = Origin::new(true, &self.authority);
        let probe = |url: String| async move {
            let request = Request::get(url).body(Full::default());
            let request = request.map_err(|error| unsent(&self.authority, error))?;
            self.send(request, self.patience).await.map(drop)
        };
        let speaks_tls = timeout(TLS_OR_NOT, probe(https.url("/v2/"))).await;
        if matches!(speaks_tls, Ok(Ok(()))) {
            return Ok(known.insert(https).clone());
        }
        let plain = Origin::new(false, &self.authority);
        probe(plain.url("/v2/")).await?;
        Ok(known.insert(plain).clone())
    }

    /// Sends a request and waits for the head of the response. The headers of the settings are for the
    /// host itself, not for targets of redirects.
    pub(super) async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
        patience: Duration,
    ) -> Result<RegistryResponse, PullError> {
        let asked = request.uri().authority().map(ToString::to_string);
        let asked = asked.unwrap_or_default().to_ascii_lowercase();
        if asked == self.authority {
            let headers = request.headers_mut();
            let is_said = headers.contains_key(header::AUTHORIZATION);
            for (name, value) in &self.headers {
                // The answer to a challenge overrides a header of the settings.
                if name != header::AUTHORIZATION || !is_said {
                    headers.append(name, value.clone());
                }
            }
        }
        let takes_any = self.is_insecure(&asked);
        let limits = self.limits();
        self.clients
            .send(request, takes_any, patience, limits)
            .await
    }
}
