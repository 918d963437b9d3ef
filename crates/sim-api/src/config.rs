//! How the server is set up.

use std::{net::SocketAddr, time::Duration};

use jiff::Timestamp;

use crate::access::AUDIENCE;

/// Who signs off certificate requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approval {
    /// A person or a test.
    Manual,
    /// The server itself for client certificates of nodes, as kube-controller-manager does.
    Clients,
    /// The server itself for all it can sign.
    All,
}

/// Settings of a [`SimApi`](crate::SimApi). All but `listen`, `tls`, `seed` and `start` can be changed
/// while it runs.
#[derive(Debug, Clone, PartialEq)]
pub struct SimApiConfig {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Speak TLS with a certificate of the server's own authority.
    pub tls: bool,
    /// Other names and addresses that the server's certificate is for.
    pub names: Vec<String>,
    /// What chance and UIDs come from.
    pub seed: u64,
    /// The time the server's clock shows at the start, instead of the machine's.
    pub start: Option<Timestamp>,
    /// Refuse who does not prove who they are. Otherwise they are administrators.
    pub authenticate: bool,
    /// The audiences of tokens that are for this server (`--api-audiences`).
    pub audiences: Vec<String>,
    /// The longest life of a service account's token (`--service-account-max-token-expiration`); one that is asked for
    /// longer is cut.
    pub longest_token: Option<Duration>,
    /// Nodes may only change what is theirs.
    pub node_restriction: bool,
    /// Nodes may only read their own object, their pods, and what these name.
    pub node_authorization: bool,
    /// With `node_authorization`: for this time after the server came back it does not know yet which pods are on
    /// which node, and lets nodes read nothing of what these name. The real one needs a moment, too.
    pub relations_after: Duration,
    /// For this time after a pod was made, bound, changed or removed, the authorizer of nodes and NodeRestriction know it as
    /// it was before: a node is refused what the pod names, and a token for it. The real ones read pods from caches,
    /// which are some milliseconds behind the watch that a node reads.
    pub cache_lag: Duration,
    /// Bind pods to nodes.
    pub scheduler: bool,
    /// Taint nodes by their conditions, call their state unknown once their lease runs out, and remove
    /// the pods of nodes that are gone.
    pub node_lifecycle: bool,
    /// Give each node a range of pod addresses, 10.244.N.0/24.
    pub pod_cidrs: bool,
    /// Give pods the token volume of their service account.
    pub service_account_volumes: bool,
    /// A bearer token to show to nodes besides the server's client certificate.
    pub node_token: Option<String>,
    /// Offer lists as the first part of a watch (`sendInitialEvents`).
    pub streaming_lists: bool,
    /// Between two bookmarks of a watch.
    pub bookmark_every: Duration,
    /// Who approves certificate requests.
    pub approval: Approval,
    /// How long signed certificates last, unless the request asks for less.
    pub certificate_lifetime: Duration,
    /// Number of remembered changes; older watches get 410 Gone.
    pub remembered_changes: usize,
    /// Requests that the oracle remembers; counts are kept of all.
    pub remembered_requests: usize,
    /// The largest body of a request in bytes.
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
