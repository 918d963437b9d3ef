//! A port with a node behind it, and clients with credentials of all kinds.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use parking_lot::Mutex;
use rubelet_audit::AuditLog;
use rubelet_http_core::{
    connections::{ConnectionObserver, RefusalReason},
    user::{Attributes, AuthError, Authenticator, Authorizer, User},
};
use rubelet_server::{
    NodeView,
    testing::{FakeNode, pod},
};
use rustls::{ClientConfig, RootCertStore, pki_types::ServerName};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::oneshot,
    task::JoinHandle,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::authority::{Authority, Holder};
use crate::{
    Access, ClientCa, EndpointOptions, RequestLabels, RequestObserver, SecureParts, TlsSettings,
    bind_port, crypto::provider, serve_read_only, serve_secure,
};

/// Says whose token it is by its beginning: `tok-ann` is ann's, and so is `tok-ann.more`.
pub(super) struct Tokens;

#[async_trait]
impl Authenticator for Tokens {
    async fn token(&self, token: &str) -> Result<Option<User>, AuthError> {
        Ok(token.strip_prefix("tok-").map(|rest| User {
            name: rest.split('.').next().unwrap_or_default().to_owned(),
            ..User::default()
        }))
    }
}

/// `ann` is allowed everything, `meter` may read metrics, other users nothing. For `lost` the
/// review fails.
#[derive(Default)]
pub(super) struct Rights {
    pub(super) asked: Mutex<Vec<(User, &'static str, &'static str)>>,
}

#[async_trait]
impl Authorizer for Rights {
    async fn authorize(&self, user: &User, of: &Attributes) -> Result<bool, AuthError> {
        let question = (user.clone(), of.verb, of.subresource);
        self.asked.lock().push(question);
        match user.name.as_str() {
            "ann" => Ok(true),
            "meter" => Ok(of.subresource == "metrics"),
            "lost" => Err(AuthError("no answer".to_owned())),
            _ => Ok(false),
        }
    }
}

/// Records all calls.
#[derive(Default)]
pub(super) struct Notes(Mutex<Vec<String>>);

impl Notes {
    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }

    fn note(&self, text: String) {
        self.0.lock().push(text);
    }
}

impl ConnectionObserver for Notes {
    fn refused(&self, listener: &'static str, reason: RefusalReason) {
        self.note(format!("refused {listener} {}", reason.as_str()));
    }

    fn session_ended(&self) {}
}

impl RequestObserver for Notes {
    fn began(&self, labels: &RequestLabels) {
        let RequestLabels {
            method,
            path,
            server_type,
            ..
        } = labels;
        self.note(format!("began {method} {path} {server_type}"));
    }
    fn answered(&self, labels: &RequestLabels, code: u16) {
        self.note(format!("answered {} {code}", labels.path));
    }
    fn ended(&self, labels: &RequestLabels, _: Duration) {
        self.note(format!("ended {}", labels.path));
    }
    fn websocket(&self, subresource: &'static str) {
        self.note(format!("websocket {subresource}"));
    }
    fn handshake_failed(&self) {
        self.note("handshake failed".to_owned());
    }
}

#[derive(Default)]
pub(super) struct Setup {
    pub(super) anonymous: bool,
    pub(super) tls: TlsSettings,
    pub(super) options: EndpointOptions,
    pub(super) audit: Option<Arc<AuditLog>>,
    /// A free port of 127.0.0.1 by default.
    pub(super) listens: Option<SocketAddr>,
}

pub(super) struct Server {
    pub(super) node: Arc<FakeNode>,
    pub(super) address: SocketAddr,
    pub(super) authority: Authority,
    pub(super) notes: Arc<Notes>,
    pub(super) rights: Arc<Rights>,
    pub(super) directory: TempDir,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

pub(super) const CA_FILE: &str = "ca.crt";

fn node() -> Arc<FakeNode> {
    let node = Arc::new(FakeNode::default());
    node.pods.put(pod("default", "web", "web", &["a"]));
    node.pods.put(pod("default", "db", "db", &["a", "b"]));
    node
}

impl Server {
    pub(super) async fn start() -> Self {
        Self::with(Setup::default()).await
    }

    pub(super) async fn with(setup: Setup) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let authority = Authority::new("the authority");
        let ca_file = directory.path().join(CA_FILE);
        std::fs::write(&ca_file, authority.pem()).unwrap();
        let rights = Arc::new(Rights::default());
        let notes = Arc::new(Notes::default());
        let parts = SecureParts {
            tls: setup.tls,
            certificate: authority.server(),
            access: Access {
                client_ca: Some(Arc::new(ClientCa::load(&ca_file).await.unwrap())),
                anonymous: setup.anonymous,
                authenticator: Some(Arc::new(Tokens)),
                authorizer: rights.clone(),
                node: "n1".into(),
                fine_grained: true,
            },
            options: setup.options,
            observer: notes.clone(),
            audit: setup.audit,
        };
        let listens = setup.listens;
        let listens = listens.unwrap_or_else(|| (Ipv4Addr::LOCALHOST, 0).into());
        let listener = bind_port(listens).await.unwrap();
        let address = listener.local_addr().unwrap();
        let node = node();
        let view: Arc<dyn NodeView> = node.clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(serve_secure(listener, view, parts, async move {
            let _ = stopped.await;
        }));
        Self {
            node,
            address,
            authority,
            notes,
            rights,
            directory,
            stop: Some(stop),
            task,
        }
    }

    /// The plain port.
    pub(super) async fn read_only() -> Self {
        let notes = Arc::new(Notes::default());
        let listener = bind_port("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let node = node();
        let view: Arc<dyn NodeView> = node.clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let observer = notes.clone();
        let task = tokio::spawn(serve_read_only(listener, view, observer, async move {
            let _ = stopped.await;
        }));
        Self {
            node,
            address,
            authority: Authority::new("unused"),
            notes,
            rights: Arc::default(),
            directory: tempfile::tempdir().unwrap(),
            stop: Some(stop),
            task,
        }
    }

    pub(super) async fn stop(mut self) {
        self.stop.take().unwrap().send(()).unwrap();
        self.task.await.unwrap();
    }

    /// A connection with that certificate, or none.
    pub(super) async fn connect(&self, holder: Option<&Holder>) -> TlsStream<TcpStream> {
        self.try_connect(holder, &[b"http/1.1"]).await.unwrap()
    }

    pub(super) async fn try_connect(
        &self,
        holder: Option<&Holder>,
        protocols: &[&[u8]],
    ) -> io::Result<TlsStream<TcpStream>> {
        let mut config = self.client_config(holder);
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        self.connect_as(config).await
    }

    pub(super) fn client_config(&self, holder: Option<&Holder>) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.der()).unwrap();
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        match holder.cloned() {
            Some(holder) => builder
                .with_client_auth_cert(holder.chain, holder.key)
                .unwrap(),
            None => builder.with_no_client_auth(),
        }
    }

    pub(super) async fn connect_as(
        &self,
        config: ClientConfig,
    ) -> io::Result<TlsStream<TcpStream>> {
        Self::over(TcpStream::connect(self.address).await?, config).await
    }

    /// As [`connect`](Self::connect), over a connection.
    pub(super) async fn connect_over(
        &self,
        stream: TcpStream,
        holder: Option<&Holder>,
    ) -> io::Result<TlsStream<TcpStream>> {
        let mut config = self.client_config(holder);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Self::over(stream, config).await
    }

    async fn over(stream: TcpStream, config: ClientConfig) -> io::Result<TlsStream<TcpStream>> {
        // Else a request waits until the server has acknowledged the end of the handshake, 40 ms later.
        stream.set_nodelay(true)?;
        let name = ServerName::try_from("node").unwrap();
        TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
    }

    /// Asks once as `ann`.
    pub(super) async fn get(&self, path: &str) -> Reply {
        self.ask(&Credentials::Token("tok-ann"), "GET", path).await
    }

    /// Asks once with those credentials.
    pub(super) async fn ask(&self, as_: &Credentials<'_>, method: &str, path: &str) -> Reply {
        let (holder, header) = match as_ {
            Credentials::None => (None, String::new()),
            Credentials::Token(token) => (None, format!("Authorization: Bearer {token}\r\n")),
            Credentials::Certificate(holder) => (Some(holder), String::new()),
            Credentials::Both(holder, token) => {
                (Some(holder), format!("Authorization: Bearer {token}\r\n"))
            }
        };
        let mut stream = self.connect(holder).await;
        let request =
            format!("{method} {path} HTTP/1.1\r\nHost: node\r\nConnection: close\r\n{header}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        Reply::read(&rest(&mut stream).await)
    }
}

/// What a client shows of itself.
pub(super) enum Credentials<'a> {
    None,
    Token(&'a str),
    Certificate(Holder),
    Both(Holder, &'a str),
}

/// Everything until the other side ends; that it ends without a goodbye of TLS is no matter here.
pub(super) async fn rest(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> String {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
    String::from_utf8(bytes).unwrap()
}

#[derive(Debug)]
pub(super) struct Reply {
    pub(super) code: u16,
    pub(super) headers: String,
    pub(super) body: String,
}

impl Reply {
    pub(super) fn read(text: &str) -> Self {
        let (headers, body) = text.split_once("\r\n\r\n").expect("a complete answer");
        let headers = headers.to_ascii_lowercase();
        let body = if headers.contains("transfer-encoding: chunked") {
            unchunked(body)
        } else {
            body.to_owned()
        };
        Self {
            code: headers.split(' ').nth(1).unwrap().parse().unwrap(),
            headers,
            body,
        }
    }
}

fn unchunked(mut text: &str) -> String {
    let mut body = String::new();
    while let Some((length, rest)) = text.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap();
        body.push_str(&rest[..length]);
        text = rest.get(length + 2..).unwrap_or_default();
    }
    body
}
