//! The node's own certificates: its client certificate for the API server, and the one of its port.
//!
//! Source of the rules: `pkg/kubelet/certificate` and `k8s.io/client-go/util/certificate` of
//! Kubernetes 1.36. Names and places of the files are the kubelet's, so that a node can be taken
//! over and handed back.
//!
//! - [`ClientCertificate`]: the node's identity at the API server. Requested with a bootstrap
//!   kubeconfig, renewed before it expires.
//! - [`ServingCert`]: the certificate of port 10250. From files, from the cluster, or made here.
//!
//! The decisions are in [`rules`] and read no clock and no file; `store` writes the files;
//! `signing` calls the API server. A request that waits for its approval is found again after a
//! restart: its key is on disk, and its name follows from the key.

mod client;
mod key;
mod notice;
mod pair;
mod pem;
mod rotation;
pub mod rules;
pub mod serving;
mod signing;
mod store;
#[cfg(test)]
mod test_signer;
#[cfg(test)]
mod tests;

pub use client::{ClientCertificate, ClientCertificateError, ClientSetup, Expiry};
pub use notice::{CertificateHooks, CertificateNotice};
pub use pair::{Certificate, Leaf, Pair, PairError};
pub use rules::ServingNames;
pub use serving::{ClusterServing, ServingCert};
pub use signing::SigningError;
pub use store::StoreError;
