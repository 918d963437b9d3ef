//! From a request to a session.

use std::sync::Arc;

use async_trait::async_trait;
use http::{Request, Response, header};
use hyper_util::rt::TokioIo;
use rubelet_cri::{CriError, CriResult};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::{
    Duplex, PortDialer, ServeOptions, SessionKind, SessionTarget, StdStreams, Upgrade,
    agreed::{ports, process, switching},
    link::watched,
    negotiate::{Agreed, Agreement, Disagreement, negotiate},
    proxy,
};

/// Answers a request for a session: HTTP/1.1 with `Upgrade: SPDY/3.1` or `websocket`, GET or POST.
/// The caller has authorized it. Its connection must be served with upgrades enabled.
pub async fn upgrade<B>(
    mut request: Request<B>,
    target: SessionTarget,
    mut options: ServeOptions,
) -> Upgrade {
    let agreement = match negotiate(request.headers(), target.kind()) {
        Ok(agreement) => agreement,
        Err(why) => return refuse(why),
    };
    let method = request.method().clone();
    let upgraded = hyper::upgrade::on(&mut request);
    let client = async move {
        match upgraded.await {
            Ok(io) => Some(TokioIo::new(io)),
            Err(error) => {
                tracing::debug!(%error, "A connection was not upgraded");
                None
            }
        }
    };
    let link = options.link.take();
    if let SessionTarget::Url {
        url,
        kind,
        streams,
        ports,
    } = target
    {
        let of = proxy::ClientRequest {
            method,
            kind,
            streams,
            ports,
        };
        let upgrade = proxy::upgrade(client, &url, of, agreement, options).await;
        return Upgrade {
            session: upgrade
                .session
                .map(|session| watched(session, link, "client")),
            ..upgrade
        };
    }
    let Agreement { agreed, headers } = agreement;
    let session = async move {
        if let Some(io) = client.await {
            serve(io, agreed, target, options).await;
        }
    };
    Upgrade {
        response: switching(headers),
        session: Some(watched(Box::pin(session), link, "client")),
    }
}

async fn serve<I>(io: I, agreed: Agreed, target: SessionTarget, options: ServeOptions)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    match target {
        SessionTarget::Exec(request, sessions) => {
            let streams = streams(request.stdin, request.stdout, request.stderr, request.tty);
            let open = async move { sessions.exec(request).await };
            process(io, agreed, (SessionKind::Exec, streams), open, options).await;
        }
        SessionTarget::Attach(request, sessions) => {
            let streams = streams(request.stdin, request.stdout, request.stderr, request.tty);
            let open = async move { sessions.attach(request).await };
            process(io, agreed, (SessionKind::Attach, streams), open, options).await;
        }
        SessionTarget::PortForward(request, sessions) => {
            let dialer = sessions.port_forward(&request.pod_sandbox_id).await;
            // HTTP is over: the client gets errors on the streams of each port, as from a runtime.
            let dialer = dialer.unwrap_or_else(|error| Arc::new(NoDialer(error)));
            let named = request.port.iter();
            let named = named.filter_map(|port| u16::try_from(*port).ok());
            ports(io, agreed, named.collect(), dialer, options).await;
        }
        // Answered by the proxy.
        SessionTarget::Url { .. } => {}
    }
}

fn streams(stdin: bool, stdout: bool, stderr: bool, tty: bool) -> StdStreams {
    StdStreams {
        stdin,
        stdout,
        stderr: stderr && !tty,
        tty,
    }
}

/// A pod that can't be reached, and why.
struct NoDialer(CriError);

#[async_trait]
impl PortDialer for NoDialer {
    async fn dial(&self, _: u16) -> CriResult<Duplex> {
        Err(self.0.clone())
    }
}

fn refuse(why: Disagreement) -> Upgrade {
    let headers = why.headers();
    let mut response = Response::new(why.text.into());
    *response.status_mut() = why.code;
    *response.headers_mut() = headers;
    let plain = http::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    Upgrade {
        response,
        session: None,
    }
}
