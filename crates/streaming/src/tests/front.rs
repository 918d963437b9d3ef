//! A server for one session, with any target.

use std::{convert::Infallible, future::Future, time::Duration};

use http::{HeaderMap, Request};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn, upgrade::Upgraded};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::{net::TcpListener, task::JoinHandle};

use super::fixture::upgraded;
use crate::{Link, ServeOptions, SessionSocket, SessionTarget, upgrade};

/// No limit, and no end.
pub(super) fn endless() -> ServeOptions {
    options(Duration::ZERO, std::future::pending())
}

pub(super) fn options(
    idle_timeout: Duration,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> ServeOptions {
    ServeOptions {
        idle_timeout,
        shutdown: Box::pin(shutdown),
        link: None,
    }
}

/// Serves one session to one client, as a port of the node does; returns after its end.
pub(super) fn serve_one(
    listener: TcpListener,
    target: SessionTarget,
    options: ServeOptions,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        drop(listener);
        let socket = SessionSocket::new(stream);
        let link = Link::of(&socket);
        let asked = Mutex::new(Some((target, ServeOptions { link, ..options })));
        let begun = Mutex::new(None);
        let service = service_fn(|request: Request<Incoming>| {
            let (target, options) = asked.lock().take().unwrap();
            let begun = &begun;
            async move {
                let upgrade = upgrade(request, target, options).await;
                *begun.lock() = upgrade.session;
                Ok::<_, Infallible>(upgrade.response.map(Full::new))
            }
        });
        let served = http1::Builder::new().serve_connection(TokioIo::new(socket), service);
        served.with_upgrades().await.unwrap();
        let session = begun.lock().take().unwrap();
        session.await;
    })
}

/// A server in front of a target; the upgraded connection to it.
pub(super) async fn through(
    target: SessionTarget,
    of: HeaderMap,
    options: ServeOptions,
) -> (TokioIo<Upgraded>, HeaderMap) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/session", listener.local_addr().unwrap());
    serve_one(listener, target, options);
    upgraded(&url, of).await
}
