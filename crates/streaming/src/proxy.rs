//! Sessions with the streaming server of another runtime. Each such server supports SPDY, so that is what
//! the runtime gets; the client gets what it asked for.

use std::{future::Future, io, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use rubelet_base::ErrorChain;
use rubelet_cri::{CriError, CriErrorKind, CriResult};
use rubelet_tls::AcceptAnyServer;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::TlsConnector;

use crate::{
    Duplex, Link, PortDialer, RemoteProcess, ServeOptions, SessionKind, SessionSocket, Source,
    StdStreams, Upgrade,
    agreed::{ports, process, switching},
    client,
    ending::{PortsEnd, SessionEnding},
    link::watched,
    negotiate::Agreement,
};

/// Timeout of the runtime's response.
const ANSWER: Duration = Duration::from_secs(15);

/// Maximum length of a refusal that is passed on.
const LONGEST_REFUSAL: usize = 64 << 10;

/// A request for a session.
pub(crate) struct ClientRequest {
    pub(crate) method: Method,
    pub(crate) kind: SessionKind,
    pub(crate) streams: StdStreams,
    pub(crate) ports: Vec<u16>,
}

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
    let ClientRequest {
        method,
        kind,
        streams,
        ports: named,
    } = asked;
    let headers = client::upgrade_headers(kind);
    let answered = timeout(ANSWER, ask(url, method, headers)).await;
    let (response, link) = match answered.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
        Ok(answered) => answered,
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
    let Agreement { agreed, headers } = agreement;
    let session = async move {
        let (Some(client), Ok(runtime)) = (client.await, hyper::upgrade::on(response).await) else {
            return;
        };
        let runtime = TokioIo::new(runtime);
        match kind {
            SessionKind::PortForward => {
                let dialer = Arc::new(RuntimePorts(client::ports(runtime)));
                ports(client, agreed, named, dialer, options).await;
            }
            SessionKind::Exec | SessionKind::Attach => {
                let open = open(runtime, answer, streams);
                process(client, agreed, (kind, streams), open, options).await;
            }
        }
    };
    Upgrade {
        response: switching(headers),
        session: Some(watched(Box::pin(session), link, "container runtime")),
    }
}

/// Opens the streams of a process. That the runtime is gone is what the client gets as the end.
async fn open<I>(runtime: I, answer: HeaderMap, streams: StdStreams) -> CriResult<RemoteProcess>
where
    I: AsyncRead + AsyncWrite + Send + 'static,
{
    let process = client::process(runtime, &answer, streams).await;
    let mut process = process.map_err(|error| of_runtime(&error))?;
    let exit = process.exit;
    process.exit = Box::pin(async move { exit.await.map_err(|error| of_runtime(&error)) });
    Ok(process)
}

/// An error of the connection to the runtime, for the client of the session.
fn of_runtime(error: &CriError) -> CriError {
    match error.kind {
        CriErrorKind::Unavailable => {
            CriError::new(error.call, CriErrorKind::Unavailable, runtime_lost())
        }
        _ => error.clone(),
    }
}

/// Connections to ports through the runtime.
struct RuntimePorts(Arc<dyn PortDialer>);

#[async_trait]
impl PortDialer for RuntimePorts {
    async fn dial(&self, port: u16) -> CriResult<Duplex> {
        let dialed = self.0.dial(port).await;
        let Duplex { source, sink } = dialed.map_err(|error| of_runtime(&error))?;
        Ok(Duplex {
            source: Box::new(RuntimeSource(source)),
            sink,
        })
    }

    async fn ended(&self) -> PortsEnd {
        self.0.ended().await
    }
}

/// Data from a port.
struct RuntimeSource(Box<dyn Source>);

#[async_trait]
impl Source for RuntimeSource {
    async fn read(&mut self) -> io::Result<Option<Bytes>> {
        self.0.read().await.map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => io::Error::new(error.kind(), runtime_lost()),
            _ => error,
        })
    }
}

fn runtime_lost() -> String {
    SessionEnding::Ports(PortsEnd::ConnectionLost).to_string()
}

/// The runtime's response, and its connection.
type Answered = (Response<Incoming>, Option<Link>);

async fn ask(url: &Uri, method: Method, headers: HeaderMap) -> io::Result<Answered> {
    let host = url.host().ok_or(io::ErrorKind::InvalidInput)?;
    let is_tls = url.scheme_str() == Some("https");
    let port = url.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
    let address = host.trim_matches(['[', ']']);
    let stream = TcpStream::connect((address, port)).await?;
    stream.set_nodelay(true)?;
    let stream = SessionSocket::new(stream);
    let link = Link::of(&stream);
    let path = url.path_and_query().map_or("/", |path| path.as_str());
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::HOST, format!("{host}:{port}"))
        .body(Empty::<Bytes>::new())
        .map_err(io::Error::other)?;
    request.headers_mut().extend(headers);
    if !is_tls {
        return Ok((send(stream, request).await?, link));
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
    Ok((send(stream, request).await?, link))
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
