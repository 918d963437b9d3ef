//! Handle of a running server, for tests.

mod faults;
mod objects;
mod oracle;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use jiff::Timestamp;
use tokio::{io::DuplexStream, net::TcpListener, sync::mpsc, task::JoinHandle};
use tokio_rustls::TlsAcceptor;

use crate::{
    AccessRule, Credentials, Identity, SimApiConfig, User,
    authority::{Authority, AuthorityError},
    clock::Clock,
    lifecycle, meta, scheduler, serve,
    state::ServerState,
    strategy,
};

pub use self::{faults::Restart, objects::WaitTimeout};

/// Why a server can't be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The server can't listen on the address.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: std::io::Error,
    },
    /// The certificates can't be created.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
}

/// A running API server. It stops when this is dropped.
pub struct SimApi {
    shared: Arc<ServerState>,
    address: SocketAddr,
    tls: bool,
    tasks: Vec<JoinHandle<()>>,
    inbox: mpsc::UnboundedSender<DuplexStream>,
}

/// Buffer of an in-memory connection in each direction, in bytes.
const PIPE: usize = 256 * 1024;

/// Initial namespaces.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

impl SimApi {
    /// Starts a server.
    ///
    /// # Errors
    /// The server can't listen on the address, or a certificate can't be created.
    pub async fn start(config: SimApiConfig) -> Result<Self, StartError> {
        let clock = Clock::new(config.start);
        let authority = Authority::new(clock.now())?;
        let listen = |source| StartError::Listen {
            address: config.listen,
            source,
        };
        let listener = TcpListener::bind(config.listen).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let acceptor = if config.tls {
            let names = server_names(address, &config.names);
            Some(TlsAcceptor::from(authority.tls(names, clock.now())?))
        } else {
            None
        };
        let tls = config.tls;
        let shared = Arc::new(ServerState::new(config, authority));
        create_initial_objects(&shared, address);
        let (inbox, received) = mpsc::unbounded_channel();
        let tasks = vec![
            tokio::spawn(serve::serve(
                Arc::clone(&shared),
                listener,
                acceptor,
                received,
            )),
            tokio::spawn(scheduler::run(Arc::clone(&shared))),
            tokio::spawn(lifecycle::run(Arc::clone(&shared))),
        ];
        Ok(Self {
            shared,
            address,
            tls,
            tasks,
            inbox,
        })
    }

    /// Its URL, such as `http://127.0.0.1:40123`.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// The address it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A connection that needs no network, for tests with paused time. It is HTTP 1.1 or 2 without TLS,
    /// as the client chooses.
    #[must_use]
    pub fn connect(&self) -> DuplexStream {
        let (ours, theirs) = tokio::io::duplex(PIPE);
        // Without a receiver the server is gone, and the client's connection is closed.
        let _ = self.inbox.send(ours);
        theirs
    }

    /// The certificate of the cluster's authority, as PEM.
    #[must_use]
    pub fn ca_pem(&self) -> String {
        self.shared.authority.pem()
    }

    /// A client certificate of a user, with the first group only.
    ///
    /// # Errors
    /// The certificate can't be created.
    pub fn client_certificate(
        &self,
        user: &User,
        lifetime: Duration,
    ) -> Result<Identity, AuthorityError> {
        self.shared.authority.client(user, self.now(), lifetime)
    }

    /// A serving certificate for these names and addresses, signed by the same authority.
    ///
    /// # Errors
    /// The certificate can't be created.
    pub fn server_certificate(
        &self,
        names: &[&str],
        lifetime: Duration,
    ) -> Result<Identity, AuthorityError> {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        self.shared.authority.server(names, self.now(), lifetime)
    }

    /// The text of a kubeconfig for this server.
    #[must_use]
    pub fn kubeconfig(&self, credentials: &Credentials) -> String {
        let ca = self.tls.then(|| self.ca_pem());
        credentials.kubeconfig(&self.url(), ca.as_deref())
    }

    /// The time on the server's clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    /// Changes settings while it runs.
    pub fn configure(&self, change: impl FnOnce(&mut SimApiConfig)) {
        self.shared.configure(change);
    }

    /// Adds a bearer token of a user, for requests and for token reviews.
    pub fn add_token(&self, token: &str, user: User) {
        self.shared.access().add_token(token, user);
    }

    /// Removes a bearer token.
    pub fn remove_token(&self, token: &str) {
        self.shared.access().remove_token(token);
    }

    /// Adds an access rule. Reviews deny what no rule allows, except to `system:masters`; requests to
    /// the server itself are denied only by rules.
    pub fn add_access_rule(&self, rule: AccessRule) {
        self.shared.access().add_rule(rule);
    }

    /// Sets the access rules.
    pub fn set_access_rules(&self, rules: Vec<AccessRule>) {
        self.shared.access().set_rules(rules);
    }
}

impl Drop for SimApi {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Names and addresses of the server's certificate.
fn server_names(address: SocketAddr, more: &[String]) -> Vec<String> {
    let mut names = vec![
        "localhost".to_owned(),
        "kubernetes".to_owned(),
        "kubernetes.default.svc".to_owned(),
        "127.0.0.1".to_owned(),
        "10.96.0.1".to_owned(),
    ];
    names.push(address.ip().to_string());
    names.extend_from_slice(more);
    names.sort();
    names.dedup();
    names
}

/// Creates the objects that every cluster has.
fn create_initial_objects(shared: &ServerState, address: SocketAddr) {
    let now = shared.clock.now();
    shared.with_store(|store| {
        let mut dice = shared.dice();
        for name in NAMESPACES {
            store.put(
                "namespaces",
                serde_json::json!({
                    "apiVersion": "v1",
                    "kind": "Namespace",
                    "metadata": {
                        "name": name,
                        "uid": dice.uid(),
                        "creationTimestamp": crate::clock::seconds(now),
                        "labels": { "kubernetes.io/metadata.name": name },
                    },
                    "spec": { "finalizers": ["kubernetes"] },
                    "status": { "phase": "Active" },
                }),
            );
            strategy::create_namespace_objects(name, &shared.authority, store, &mut dice, now);
        }
        let mut service = serde_json::json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "name": "kubernetes",
                "namespace": "default",
                "uid": dice.uid(),
                "creationTimestamp": crate::clock::seconds(now),
                "labels": { "component": "apiserver", "provider": "kubernetes" },
            },
            "spec": {
                "type": "ClusterIP",
                "clusterIP": "10.96.0.1",
                "clusterIPs": ["10.96.0.1"],
                "sessionAffinity": "None",
                "ports": [{
                    "name": "https", "port": 443, "protocol": "TCP", "targetPort": address.port(),
                }],
            },
            "status": { "loadBalancer": {} },
        });
        meta::drop_nulls(&mut service);
        store.put("services", service);
    });
}
