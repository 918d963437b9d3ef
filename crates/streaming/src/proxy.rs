//! Sessions with the streaming server of another runtime. It supports SPDY, and WebSockets with old
//! protocols: those are copied byte by byte. Newer protocols are translated into SPDY.

use std::{future::Future, io, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use rubelet_base::ErrorChain;
use rubelet_tls::AcceptAnyServer;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::TlsConnector;

use crate::{
    Duplex, ServeOptions, SessionKind, StdStreams, Upgrade,
    agreed::{process, switching},
    client, copy,
    io::duplex,
    negotiate::{Agreed, Agreement, STREAM_PROTOCOL},
    websocket,
};

/// Timeout of the runtime's response.
const ANSWER: Duration = Duration::from_secs(15);

/// Maximum length of a refusal that is passed on.
const LONGEST_REFUSAL: usize = 64 << 10;

/// Time for a runtime to end the session after its client has.
const SESSION_END_TIMEOUT: Duration = Duration::from_secs(2);

/// A request for a session.
pub(crate) struct ClientRequest {
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) kind: SessionKind,
    pub(crate) streams: StdStreams,
}

/// The headers of an upgrade; no others are passed to the runtime.
const PASSED_ON: [header::HeaderName; 6] = [
    header::CONNECTION,
    header::UPGRADE,
    header::SEC_WEBSOCKET_KEY,
    header::SEC_WEBSOCKET_VERSION,
    header::SEC_WEBSOCKET_PROTOCOL,
    STREAM_PROTOCOL,
];

/// The headers of the runtime's response that are passed to the client.
const PASSED_BACK: [header::HeaderName; 5] = [
    header::CONNECTION,
    header::UPGRADE,
    header::SEC_WEBSOCKET_ACCEPT,
    header::SEC_WEBSOCKET_PROTOCOL,
    STREAM_PROTOCOL,
];

/// Sends the request to the runtime and answers the client.
pub(crate) async fn upgrade<I>(
    client: impl Future<Output = Option<I>> + Send + 'static,
    url: &Uri,
    asked: ClientRequest,
    agreement: Agreement,
    options: ServeOptions,
) -> Upgrade
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let translate = match agreement.agreed {
        Agreed::Channels(protocol) => protocol.close_signal,
        Agreed::Tunnel => true,
        Agreed::Spdy { .. } => false,
    };
    let headers = match translate {
        true => client::upgrade_headers(asked.kind),
        false => only(&asked.headers, &PASSED_ON),
    };
    let answered = timeout(ANSWER, ask(url, asked.method, headers)).await;
    let response = match answered.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
        Ok(response) => response,
        Err(error) => {
            let text = format!(
                "cannot reach the runtime's streaming server: {}\n",
                ErrorChain(&error)
            );
            tracing::warn!(%error, "Cannot reach the streaming server of the container runtime");
            return refusal(StatusCode::INTERNAL_SERVER_ERROR, text.into());
        }
    };
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return pass_back(response).await;
    }
    let answer = response.headers().clone();
    let headers = match translate {
        true => agreement.headers,
        false => only(&answer, &PASSED_BACK),
    };
    let session = async move {
        let (Some(client), Ok(runtime)) = (client.await, hyper::upgrade::on(response).await) else {
            return;
        };
        let runtime = TokioIo::new(runtime);
        match agreement.agreed {
            Agreed::Channels(_) if translate => {
                let streams = asked.streams;
                let open = async move { client::process(runtime, &answer, streams).await };
                let what = (asked.kind, streams);
                process(client, agreement.agreed, what, open, options).await;
            }
            Agreed::Tunnel => {
                pass_on(websocket::tunnel(client).await, duplex(runtime), options).await;
            }
            _ => pass_on(duplex(client), duplex(runtime), options).await,
        }
    };
    Upgrade {
        response: switching(headers),
        session: Some(Box::pin(session)),
    }
}

/// Copies bytes until either side ends.
async fn pass_on(client: Duplex, runtime: Duplex, options: ServeOptions) {
    let (mut from_client, mut to_client) = (client.source, client.sink);
    let (mut from_runtime, mut to_runtime) = (runtime.source, runtime.sink);
    let up = copy(&mut *from_client, &mut *to_runtime);
    let down = copy(&mut *from_runtime, &mut *to_client);
    let (mut up, mut down) = (std::pin::pin!(up), std::pin::pin!(down));
    // The runtime closes idle sessions by itself.
    tokio::select! {
        _ = down.as_mut() => {}
        _ = up.as_mut() => drop(timeout(SESSION_END_TIMEOUT, down).await),
        () = options.shutdown => {}
    }
}

async fn ask(url: &Uri, method: Method, headers: HeaderMap) -> io::Result<Response<Incoming>> {
    let host = url.host().ok_or(io::ErrorKind::InvalidInput)?;
    let is_tls = url.scheme_str() == Some("https");
    let port = url.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
    let address = host.trim_matches(['[', ']']);
    let stream = TcpStream::connect((address, port)).await?;
    stream.set_nodelay(true)?;
    let path = url.path_and_query().map_or("/", |path| path.as_str());
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::HOST, format!("{host}:{port}"))
        .body(Empty::<Bytes>::new())
        .map_err(io::Error::other)?;
    request.headers_mut().extend(headers);
    if !is_tls {
        return send(stream, request).await;
    }
    // Like the kubelet, no certificate is verified here: the runtime has named the address itself.
    let config = rubelet_tls::client_config()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AcceptAnyServer))
        .with_no_client_auth();
    let name = address.to_owned().try_into().map_err(io::Error::other)?;
    let stream = TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await?;
    send(stream, request).await
}

async fn send<I>(io: I, request: Request<Empty<Bytes>>) -> io::Result<Response<Incoming>>
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(io))
        .await
        .map_err(io::Error::other)?;
    // The response reports its error as well.
    tokio::spawn(async move { connection.with_upgrades().await.ok() });
    sender.send_request(request).await.map_err(io::Error::other)
}

fn only(headers: &HeaderMap, names: &[header::HeaderName]) -> HeaderMap {
    let mut passed = HeaderMap::new();
    for name in names {
        for value in headers.get_all(name) {
            passed.append(name, value.clone());
        }
    }
    passed
}

async fn pass_back(response: Response<Incoming>) -> Upgrade {
    let code = response.status();
    let body = Limited::new(response.into_body(), LONGEST_REFUSAL)
        .collect()
        .await;
    let text = body.map(|body| body.to_bytes()).unwrap_or_default();
    refusal(code, text)
}

fn refusal(code: StatusCode, text: Bytes) -> Upgrade {
    let mut response = Response::new(text);
    *response.status_mut() = code;
    Upgrade {
        response,
        session: None,
    }
}
