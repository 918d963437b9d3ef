//! A cluster for one node: the model API server on a port of 127.0.0.1, with TLS and a scheduler, and
//! the files that an agent and kubectl need to talk to it.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use sim_api::{Credentials, SimApi, SimApiConfig, User};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::agent::{AgentBuilder, free_port};

/// How long certificates last.
const LIFETIME: Duration = Duration::from_secs(24 * 3600);
/// The token of a node that has no certificate yet.
const BOOTSTRAP_TOKEN: &str = "abcdef.0123456789abcdef";

/// A model API server and its files.
pub struct Cluster {
    // Dropped before the runtime that it runs on.
    api: SimApi,
    files: TempDir,
    node_ip: IpAddr,
    runtime: Runtime,
}

impl Cluster {
    /// Starts one.
    ///
    /// # Errors
    /// When no port is free, or a file can't be written.
    pub fn start() -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let config = SimApiConfig {
            tls: true,
            authenticate: true,
            service_account_volumes: true,
            ..SimApiConfig::default()
        };
        let api = runtime.block_on(SimApi::start(config))?;
        api.add_token(
            BOOTSTRAP_TOKEN,
            User::new("system:bootstrap:abcdef", &["system:bootstrappers"]),
        );
        let cluster = Self {
            api,
            files: tempfile::tempdir()?,
            node_ip: outward_address(),
            runtime,
        };
        std::fs::write(cluster.path("ca.crt"), cluster.api.ca_pem())?;
        let admin = cluster.api.client_certificate(&User::admin(), LIFETIME)?;
        cluster.kubeconfig("admin", &Credentials::Certificate(admin))?;
        let bootstrap = Credentials::Token(BOOTSTRAP_TOKEN.to_owned());
        cluster.kubeconfig("bootstrap", &bootstrap)?;
        Ok(cluster)
    }

    /// The server.
    #[must_use]
    pub fn api(&self) -> &SimApi {
        &self.api
    }

    /// Runs something of the server's that waits.
    pub fn wait<T>(&self, what: impl Future<Output = T>) -> T {
        self.runtime.block_on(what)
    }

    /// The kubeconfig of an administrator.
    #[must_use]
    pub fn admin_kubeconfig(&self) -> PathBuf {
        self.path("admin.kubeconfig")
    }

    /// A kubeconfig that is good for asking for a certificate.
    #[must_use]
    pub fn bootstrap_kubeconfig(&self) -> PathBuf {
        self.path("bootstrap.kubeconfig")
    }

    /// A file of the cluster.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    /// The address that the agent's port is bound to: one of this machine that is no loopback, as a
    /// node's has to be.
    #[must_use]
    pub fn node_ip(&self) -> IpAddr {
        self.node_ip
    }

    /// Sets an agent up to be a node of this cluster, with a certificate of its own.
    ///
    /// # Errors
    /// When a file can't be written.
    pub fn join(&self, builder: AgentBuilder, node_name: &str) -> Result<AgentBuilder> {
        let user = User::node(node_name);
        let identity = self.api.client_certificate(&user, LIFETIME)?;
        self.kubeconfig("node", &Credentials::Certificate(identity))?;
        let builder = self.prepare(builder, node_name)?;
        Ok(builder.flag(flag("kubeconfig", &self.path("node.kubeconfig"))))
    }

    /// The same for an agent that has to ask for its certificate.
    ///
    /// # Errors
    /// When a file can't be written.
    pub fn bootstrap(&self, builder: AgentBuilder, node_name: &str) -> Result<AgentBuilder> {
        let bootstrap = flag("bootstrap-kubeconfig", &self.bootstrap_kubeconfig());
        let builder = self.prepare(builder, node_name)?.flag(bootstrap);
        Ok(builder.flag(flag("kubeconfig", &self.path("kubelet.conf"))))
    }

    fn prepare(&self, builder: AgentBuilder, node_name: &str) -> Result<AgentBuilder> {
        let ip = self.node_ip.to_string();
        let serving = self.api.server_certificate(&[&ip, node_name], LIFETIME)?;
        std::fs::write(self.path("serving.crt"), serving.certificate_pem)?;
        std::fs::write(self.path("serving.key"), serving.key_pem)?;
        let text = |name: &str| self.path(name).display().to_string();
        let client_ca = serde_json::json!({ "x509": { "clientCAFile": text("ca.crt") } });
        Ok(builder
            .node_name(node_name)
            .config("address", ip)
            // Another test of this machine may have the usual one.
            .config("port", free_port(self.node_ip)?)
            .config("authentication", client_ca)
            .config("tlsCertFile", text("serving.crt"))
            .config("tlsPrivateKeyFile", text("serving.key"))
            // A machine for tests may be full: what is tested here is something else.
            .config(
                "evictionHard",
                serde_json::json!({ "memory.available": "1Mi" }),
            )
            .flag(flag("cert-dir", &self.path("pki"))))
    }

    fn kubeconfig(&self, name: &str, credentials: &Credentials) -> Result<()> {
        let path = self.path(&format!("{name}.kubeconfig"));
        let text = self.api.kubeconfig(credentials);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Whether the server has seen a node do what no node may.
    ///
    /// # Errors
    /// When it has; with all that was seen.
    pub fn no_violations(&self) -> Result<()> {
        let seen = self.api.violations();
        if seen.is_empty() {
            return Ok(());
        }
        Err(anyhow!("the node did what no node may: {seen:#?}"))
    }
}

fn flag(name: &str, path: &Path) -> String {
    format!("--{name}={}", path.display())
}

/// The machine's own address. Nothing is sent: connecting a UDP socket only chooses a route, and the
/// other end is an address of documentation (RFC 5737).
fn outward_address() -> IpAddr {
    let choose = || {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
        socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
        Some(socket.local_addr().ok()?.ip())
    };
    choose().unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
}
