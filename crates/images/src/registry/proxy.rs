//! Reaches registries through a proxy, as configured in the environment.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::Uri;
use hyper_util::{
    client::{
        legacy::connect::{HttpConnector, proxy::Tunnel},
        proxy::matcher::Matcher,
    },
    rt::TokioIo,
};
use tokio::net::TcpStream;
use tower::Service;

use super::origin::is_loopback;
use crate::settings::Proxy;

/// Connects directly, or through the proxy.
#[derive(Clone)]
pub(super) struct ProxyConnector {
    tcp: HttpConnector,
    proxies: Option<Arc<Matcher>>,
}

type ConnectFailure = Box<dyn std::error::Error + Send + Sync>;

impl ProxyConnector {
    pub(super) fn new(tcp: HttpConnector, proxy: &Proxy) -> Self {
        let proxies = match proxy {
            Proxy::Direct => None,
            Proxy::Environment => Some(Matcher::from_env()),
            Proxy::Https(url) => Some(Matcher::builder().https(url.clone()).build()),
        };
        Self {
            tcp,
            proxies: proxies.map(Arc::new),
        }
    }
}

impl Service<Uri> for ProxyConnector {
    type Response = TokioIo<TcpStream>;
    type Error = ConnectFailure;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, ConnectFailure>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ConnectFailure>> {
        self.tcp.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let is_near = to.authority().is_some_and(|to| is_loopback(to.as_str()));
        let is_https = to.scheme_str() == Some("https");
        let proxies = self.proxies.as_ref().filter(|_| is_https && !is_near);
        let Some(proxy) = proxies.and_then(|proxies| proxies.intercept(&to)) else {
            let connecting = self.tcp.call(to);
            return Box::pin(async move { Ok(connecting.await?) });
        };
        if proxy.uri().scheme_str() != Some("http") {
            let problem = format!(
                "the proxy {} is not supported; use one with an http:// URL",
                proxy.uri().host().unwrap_or_default()
            );
            return Box::pin(async move { Err(problem.into()) });
        }
        let mut tunnel = Tunnel::new(proxy.uri().clone(), self.tcp.clone());
        if let Some(auth) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(auth.clone());
        }
        let through = proxy.uri().authority().map(ToString::to_string);
        let connecting = tunnel.call(to);
        Box::pin(async move {
            connecting.await.map_err(|error| {
                let through = through.unwrap_or_default();
                format!("cannot connect through the proxy {through}: {error}").into()
            })
        })
    }
}
