//! A single-node cluster: an API server on a port of 127.0.0.1, and the files that an agent and
//! kubectl need to connect to it.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use sim_api::{Credentials, User};
use tempfile::TempDir;

use crate::agent::{AgentBuilder, free_port};
use crate::api_server::ApiServer;

/// An API server and its files.
pub struct Cluster {
    api: ApiServer,
    files: TempDir,
    node_ip: IpAddr,
}

impl Cluster {
    /// Starts one with the API server that the environment selects.
    ///
    /// # Errors
    /// When the server does not start, or a file can't be written.
    pub fn start() -> Result<Self> {
        Self::with(ApiServer::start()?)
    }

    /// Starts one with the model API server, whatever the environment selects.
    ///
    /// # Errors
    /// When no port is free, or a file can't be written.
    pub fn start_model() -> Result<Self> {
        Self::with(ApiServer::start_model()?)
    }

    fn with(api: ApiServer) -> Result<Self> {
        let cluster = Self {
            api,
            files: tempfile::tempdir()?,
            node_ip: outward_address(),
        };
        std::fs::write(cluster.path("ca.crt"), cluster.api.ca_pem())?;
        let admin = cluster.api.client_certificate(&User::admin())?;
        cluster.kubeconfig("admin", &Credentials::Certificate(admin))?;
        cluster.kubeconfig("bootstrap", &cluster.api.bootstrap_credentials())?;
        Ok(cluster)
    }

    /// The server.
    #[must_use]
    pub fn api(&self) -> &ApiServer {
        &self.api
    }

    /// The kubeconfig of an administrator.
    #[must_use]
    pub fn admin_kubeconfig(&self) -> PathBuf {
        self.path("admin.kubeconfig")
    }

    /// A kubeconfig with which a certificate can be requested.
    #[must_use]
    pub fn bootstrap_kubeconfig(&self) -> PathBuf {
        self.path("bootstrap.kubeconfig")
    }

    /// A file of the cluster.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    /// The address that the agent's port is bound to: a non-loopback address of this machine, as a
    /// node's must be.
    #[must_use]
    pub fn node_ip(&self) -> IpAddr {
        self.node_ip
    }

    /// Configures an agent as a node of this cluster, with its own certificate.
    ///
    /// # Errors
    /// When a file can't be written.
    pub fn join(&self, builder: AgentBuilder, node_name: &str) -> Result<AgentBuilder> {
        let user = User::node(node_name);
        let identity = self.api.client_certificate(&user)?;
        self.kubeconfig("node", &Credentials::Certificate(identity))?;
        let builder = self.prepare(builder, node_name)?;
        Ok(builder.flag(flag("kubeconfig", &self.path("node.kubeconfig"))))
    }

    /// The same for an agent that must request its certificate.
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
        let serving = self.api.server_certificate(&[&ip, node_name])?;
        std::fs::write(self.path("serving.crt"), serving.certificate_pem)?;
        std::fs::write(self.path("serving.key"), serving.key_pem)?;
        let text = |name: &str| self.path(name).display().to_string();
        let client_ca = serde_json::json!({ "x509": { "clientCAFile": text("ca.crt") } });
        // No pod provides a network.
        let network = serde_json::json!({ "network": "bridge" });
        Ok(builder
            .own_option("runtime", network)
            .node_name(node_name)
            .config("address", ip)
            // Another test on this machine may use the default port.
            .config("port", free_port(self.node_ip)?)
            .config("authentication", client_ca)
            .config("tlsCertFile", text("serving.crt"))
            .config("tlsPrivateKeyFile", text("serving.key"))
            .flag(flag("cert-dir", &self.path("pki"))))
    }

    fn kubeconfig(&self, name: &str, credentials: &Credentials) -> Result<()> {
        let path = self.path(&format!("{name}.kubeconfig"));
        let text = self.api.kubeconfig(credentials);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Checks that no node has sent a request that it must not send.
    ///
    /// # Errors
    /// One has; lists all of them.
    pub fn no_violations(&self) -> Result<()> {
        let seen = self.api.violations()?;
        if !seen.is_empty() {
            bail!(
                "the node sent requests that no node may send:\n{}",
                seen.join("\n")
            );
        }
        Ok(())
    }
}

fn flag(name: &str, path: &Path) -> String {
    format!("--{name}={}", path.display())
}

/// The machine's own address. Nothing is sent: connecting a UDP socket only selects a route, and
/// the peer is a documentation address (RFC 5737).
fn outward_address() -> IpAddr {
    let choose = || {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
        socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
        Some(socket.local_addr().ok()?.ip())
    };
    choose().unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
}
