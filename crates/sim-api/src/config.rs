//! Settings of the server.

use std::{net::SocketAddr, time::Duration};

use jiff::Timestamp;

use crate::access::AUDIENCE;

/// Who approves certificate requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approval {
    /// A person or a test.
    Manual,
    /// The server approves client certificates of nodes, as kube-controller-manager does.
    Clients,
    /// The server approves all that it can sign.
    All,
}

/// Settings of a [`SimApi`](crate::SimApi). All but `listen`, `tls`, `seed` and `start` can be changed
/// while it runs.
#[derive(Debug, Clone, PartialEq)]
pub struct SimApiConfig {
    /// Address to listen on; port 0 selects a free one.
    pub listen: SocketAddr,
    /// Use TLS with a certificate of the server's own authority.
    pub tls: bool,
    /// Additional names and addresses of the server's certificate.
    pub names: Vec<String>,
    /// Seed of random decisions and UIDs.
    pub seed: u64,
    /// Initial time of the server's clock, instead of the machine's time.
    pub start: Option<Timestamp>,
    /// Whether unauthenticated clients are anonymous, and refused. Otherwise they are
    /// administrators.
    pub authenticate: bool,
    /// The audiences of tokens for this server (`--api-audiences`).
    pub audiences: Vec<String>,
    /// Maximum lifetime of a service account token (`--service-account-max-token-expiration`); longer
    /// requests are shortened.
    pub longest_token: Option<Duration>,
    /// Nodes may only change their own objects (NodeRestriction).
    pub node_restriction: bool,
    /// Nodes may only read their own object, their pods, and the objects that these reference (node
    /// authorizer).
    pub node_authorization: bool,
    /// With `node_authorization`: how long after a start the server does not know yet which pods are on which
    /// node, and lets nodes read none of the objects that these reference, as a real server.
    pub relations_after: Duration,
    /// Lag of the pod caches of the node authorizer and of NodeRestriction: for this time after a change of a
    /// pod they know its previous state, and deny a node the objects that the pod references and tokens for
    /// it. The real caches are some milliseconds behind the watch of a node.
    pub cache_lag: Duration,
    /// Bind pods to nodes.
    pub scheduler: bool,
    /// Taint nodes by their conditions, set their state to unknown when their lease expires, and
    /// remove the pods of deleted nodes.
    pub node_lifecycle: bool,
    /// Assign a pod CIDR to each node, 10.244.N.0/24.
    pub pod_cidrs: bool,
    /// Add the token volume of the service account to pods.
    pub service_account_volumes: bool,
    /// A bearer token for requests to nodes, in addition to the server's client certificate.
    pub node_token: Option<String>,
    /// Support lists as the first part of a watch (`sendInitialEvents`).
    pub streaming_lists: bool,
    /// Time between two bookmarks of a watch.
    pub bookmark_every: Duration,
    /// Who approves certificate requests.
    pub approval: Approval,
    /// Lifetime of signed certificates, unless the request asks for less.
    pub certificate_lifetime: Duration,
    /// Number of remembered changes; older watches get 410 Gone.
    pub remembered_changes: usize,
    /// Number of requests that the oracle remembers; all are counted.
    pub remembered_requests: usize,
    /// Maximum size of a request body, in bytes.
    pub max_body: usize,
}

impl Default for SimApiConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            tls: false,
            names: Vec::new(),
            seed: 1,
            start: None,
            authenticate: false,
            audiences: vec![AUDIENCE.to_owned()],
            longest_token: None,
            node_restriction: true,
            node_authorization: false,
            relations_after: Duration::ZERO,
            cache_lag: Duration::ZERO,
            scheduler: true,
            node_lifecycle: false,
            pod_cidrs: false,
            service_account_volumes: false,
            node_token: None,
            streaming_lists: true,
            bookmark_every: Duration::from_secs(60),
            approval: Approval::Manual,
            certificate_lifetime: Duration::from_secs(365 * 24 * 3600),
            remembered_changes: 20_000,
            remembered_requests: 100_000,
            max_body: 3 * 1024 * 1024,
        }
    }
}
