//! A client of the kubelet API: SPDY over TLS, as older API servers and kubectl use it.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt as _, Empty};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use rubelet_streaming::{
    PortDialer, RemoteProcess, SessionKind, StdStreams,
    client::{ports, process, upgrade_headers},
};
use rubelet_testbed::clock;
use rubelet_tls::{AcceptAnyServer, client_config};
use rustls::{
    ClientConfig,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _},
};
use sim_api::{Authority, Identity, User, encode_query};
use tokio::{io::BufReader, net::TcpStream};
use tokio_rustls::TlsConnector;

/// Bytes of one read from the network. rustls alone reads 4 KiB at a time, which would make this client the limit of
/// what is measured.
const READ: usize = 64 << 10;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A CA certificate, and a client certificate that it signed.
pub(super) fn credentials() -> Result<(String, Identity)> {
    let now = Timestamp::try_from(clock::wall())?;
    let authority = Authority::new(now)?;
    let user = User::new("kube-apiserver", &["system:masters"]);
    Ok((authority.pem(), authority.client(&user, now, DAY)?))
}

/// A client with all permissions.
pub(super) struct NodeClient {
    address: SocketAddr,
    pod: String,
    tls: Arc<ClientConfig>,
}

impl NodeClient {
    pub(super) fn new(address: SocketAddr, pod: String, identity: &Identity) -> Result<Self> {
        let certificate = CertificateDer::from_pem_slice(identity.certificate_pem.as_bytes())?;
        let key = PrivateKeyDer::from_pem_slice(identity.key_pem.as_bytes())?;
        let tls = client_config()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AcceptAnyServer))
            .with_client_auth_cert(vec![certificate], key)?;
        Ok(Self {
            address,
            pod,
            tls: Arc::new(tls),
        })
    }

    /// Where the agent listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connects to the agent.
    pub(super) async fn connect(&self) -> Result<TcpStream> {
        Ok(TcpStream::connect(self.address).await?)
    }

    /// Executes a command in the container `main`.
    pub(super) async fn exec(&self, command: &[&str], stdin: bool) -> Result<RemoteProcess> {
        let stream = self.connect().await?;
        self.exec_over(stream, "main", command, stdin).await
    }

    /// Executes a command in a container, over this connection.
    pub(super) async fn exec_over(
        &self,
        stream: TcpStream,
        container: &str,
        command: &[&str],
        stdin: bool,
    ) -> Result<RemoteProcess> {
        let words: Vec<String> = command
            .iter()
            .map(|word| format!("&command={}", encode_query(word)))
            .collect();
        let input = if stdin { "&input=1" } else { "" };
        let path = format!(
            "/exec/default/{}/{container}?output=1{input}{}",
            self.pod,
            words.concat()
        );
        let streams = StdStreams {
            stdin,
            stdout: true,
            ..StdStreams::default()
        };
        let answer = self.ask(stream, &path, SessionKind::Exec).await?;
        let headers = answer.headers().clone();
        let io = TokioIo::new(hyper::upgrade::on(answer).await?);
        Ok(process(io, &headers, streams).await?)
    }

    /// Forwards ports.
    pub(super) async fn port_forward(&self) -> Result<Arc<dyn PortDialer>> {
        let path = format!("/portForward/default/{}", self.pod);
        let stream = self.connect().await?;
        let answer = self.ask(stream, &path, SessionKind::PortForward).await?;
        Ok(ports(TokioIo::new(hyper::upgrade::on(answer).await?)))
    }

    async fn ask(
        &self,
        stream: TcpStream,
        path: &str,
        kind: SessionKind,
    ) -> Result<http::Response<Incoming>> {
        stream.set_nodelay(true)?;
        let name = ServerName::IpAddress(self.address.ip().into());
        let connector = TlsConnector::from(Arc::clone(&self.tls));
        let stream = BufReader::with_capacity(READ, stream);
        let stream = connector
            .connect(name, stream)
            .await
            .context("no handshake")?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // Its error shows in the response as well.
        tokio::spawn(async move { connection.with_upgrades().await.ok() });
        let mut request = Request::post(path)
            .header(header::HOST, "node")
            .body(Empty::<Bytes>::new())?;
        request.headers_mut().extend(upgrade_headers(kind));
        let answer = sender.send_request(request).await?;
        if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Ok(answer);
        }
        let code = answer.status();
        let body = answer.into_body().collect().await?.to_bytes();
        bail!("{path}: {code}: {}", String::from_utf8_lossy(&body));
    }
}
