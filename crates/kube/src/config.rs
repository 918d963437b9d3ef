//! The server of a client, and its credentials.

use std::{fmt, io, path::PathBuf, pin::Pin, sync::Arc};

use tokio::io::{AsyncRead, AsyncWrite};

use crate::{
    identity::ClientIdentity,
    secret::Secret,
    server_url::{ServerUrl, ServerUrlError},
};

/// The server, its certificate authorities, and the credentials. Made by
/// [`Kubeconfig::client_config`](crate::kubeconfig::Kubeconfig::client_config).
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// The server.
    pub server: ServerUrl,
    /// The authorities of the server's certificate.
    pub roots: Roots,
    /// Any certificate of the server will do.
    pub insecure_skip_tls_verify: bool,
    /// The name in the server's certificate, where it is not the host of the URL.
    pub tls_server_name: Option<Box<str>>,
    /// The proxy on the way.
    pub proxy: Proxy,
    /// The client certificate.
    pub identity: IdentitySource,
    /// The source of the `Authorization` header.
    pub credential: Credential,
    /// Another way to the server than TCP, for tests. `server` sets the protocol on it.
    pub connector: Option<Connector>,
}

impl ClientConfig {
    /// A server that is called without any credentials, trusted by the authorities of this machine.
    ///
    /// # Errors
    /// The text is no URL of a server.
    pub fn anonymous(server: &str) -> Result<Self, ServerUrlError> {
        Ok(Self {
            server: ServerUrl::parse(server, true)?,
            roots: Roots::System,
            insecure_skip_tls_verify: false,
            tls_server_name: None,
            proxy: Proxy::Environment,
            identity: IdentitySource::None,
            credential: Credential::None,
            connector: None,
        })
    }

    /// The same server, called with this certificate and nothing else.
    #[must_use]
    pub fn with_identity(&self, identity: ClientIdentity) -> Self {
        Self {
            identity: IdentitySource::Shared(identity),
            credential: Credential::None,
            ..self.clone()
        }
    }

    /// The same client, whose bytes go over the streams that `connector` makes.
    #[must_use]
    pub fn over(self, connector: Connector) -> Self {
        Self {
            connector: Some(connector),
            ..self
        }
    }
}

/// The authorities of the server's certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Roots {
    /// The authorities of this machine. `SSL_CERT_FILE` and `SSL_CERT_DIR` count.
    System,
    /// The certificates of this PEM.
    Pem(Arc<[u8]>),
    /// The certificates of this PEM file, read again for each connection.
    File(PathBuf),
}

/// The proxy on the way to the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proxy {
    /// As `HTTPS_PROXY` and `NO_PROXY` specify.
    Environment,
    /// None.
    Direct,
    /// This `http://` proxy, with `CONNECT`.
    Http(Box<str>),
}

/// The source of the client certificate.
#[derive(Debug, Clone)]
pub enum IdentitySource {
    /// No client certificate.
    None,
    /// From a cell that another task fills, or that was filled from inline data.
    Shared(ClientIdentity),
    /// From PEM files, read again when they change.
    Files {
        /// The chain.
        certificate: PathBuf,
        /// Its key; may be the same file.
        key: PathBuf,
    },
}

/// The source of the `Authorization` header.
#[derive(Debug, Clone)]
pub enum Credential {
    /// No header.
    None,
    /// A bearer token that stays.
    Token(Secret),
    /// A bearer token from a file, read again each minute and when it is refused.
    TokenFile {
        /// The file.
        path: PathBuf,
        /// Used if the file can't be read.
        otherwise: Option<Secret>,
    },
    /// User and password.
    Basic {
        /// The user's name.
        user: Box<str>,
        /// The password.
        password: Secret,
    },
    /// A program that prints credentials: a token, a client certificate, or both.
    Exec(Box<ExecPlugin>),
}

/// Version of `client.authentication.k8s.io` that a plugin uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecVersion {
    /// `v1`.
    V1,
    /// `v1beta1`.
    V1beta1,
}

impl ExecVersion {
    /// The `apiVersion` on the wire.
    #[must_use]
    pub fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "client.authentication.k8s.io/v1",
            Self::V1beta1 => "client.authentication.k8s.io/v1beta1",
        }
    }
}

/// A program that prints credentials.
#[derive(Clone)]
pub struct ExecPlugin {
    /// The version that it uses.
    pub version: ExecVersion,
    /// A path, or a name that is searched for in `PATH`.
    pub command: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables that are added to this process's environment.
    pub env: Vec<(String, String)>,
    /// The hint for a user who doesn't have the program.
    pub install_hint: Option<String>,
    /// The description of the cluster that it wants, as JSON.
    pub cluster: Option<serde_json::Value>,
}

impl fmt::Debug for ExecPlugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Arguments and environment may hold secrets.
        f.debug_struct("ExecPlugin")
            .field("version", &self.version)
            .field("command", &self.command)
            .finish_non_exhaustive()
    }
}

/// A stream of bytes in both directions.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A stream that is being made.
type Connecting = Pin<Box<dyn Future<Output = io::Result<Box<dyn Stream>>> + Send>>;

/// Makes streams to the server.
#[derive(Clone)]
pub struct Connector {
    pub(crate) connect: Arc<dyn Fn() -> Connecting + Send + Sync>,
    /// Use HTTP/2 with an `http` server from the start.
    pub(crate) http2: bool,
}

impl Connector {
    /// Streams that `connect` makes. An `http` server gets HTTP/1.1 on them.
    #[must_use]
    pub fn new<F, S>(connect: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = io::Result<S>> + Send + 'static,
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        Self {
            connect: Arc::new(move || {
                let connecting = connect();
                Box::pin(async move { Ok(Box::new(connecting.await?) as Box<dyn Stream>) })
            }),
            http2: false,
        }
    }

    /// The same streams, on which an `http` server gets HTTP/2.
    #[must_use]
    pub fn http2(self) -> Self {
        Self {
            http2: true,
            ..self
        }
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connector")
    }
}
