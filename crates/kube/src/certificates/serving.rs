//! The certificate of the kubelet API (port 10250): from files, made here, or issued by the cluster.
//!
//! Source of the rules: `InitializeTLS` in `cmd/kubelet/app/server.go` and
//! `pkg/kubelet/certificate/kubelet.go`. Unlike there, a self-signed certificate is replaced before
//! it expires.
//!
//! Nothing here runs on its own: files are checked when a caller asks, at most once a second.

mod files;
mod self_signed;

pub use self_signed::{SelfSignedError, self_signed};

use super::notice::{CertificateHooks, CertificateNotice};
use super::pair::Certificate;
use super::rotation::Rotation;
use super::rules::{CertificateTemplate, ServingNames, ttl_seconds};
use super::store::{PairStore, StoreError, make_directory, read_pair};
use super::{key::CertificatePurpose, rotation::CsrClients};
use crate::Client;
use crate::clock::WallClock;
use files::CertificateFiles;
use jiff::Timestamp;
use parking_lot::RwLock;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use self_signed::SelfSigned;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::watch;

/// The certificate that the kubelet API (port 10250) shows. Without one, TLS connections are refused.
#[derive(Debug)]
pub struct ServingCert {
    current: RwLock<Option<Certificate>>,
    files: Option<CertificateFiles>,
    own: Option<SelfSigned>,
}

impl ServingCert {
    /// The certificate of `tlsCertFile` and `tlsPrivateKeyFile`. With `reload` (the feature gate
    /// ReloadKubeletServerCertificateFile) it is read again when one of them changes; a pair that
    /// can't be used leaves the old one in place.
    ///
    /// # Errors
    /// The files hold no certificate with its key.
    pub fn from_files(
        certificate: &Path,
        key: &Path,
        reload: bool,
    ) -> Result<Arc<Self>, StoreError> {
        let files = CertificateFiles::new(certificate, key);
        let pair = read_pair(certificate, key)?;
        Ok(Arc::new(Self {
            current: RwLock::new(Some(pair.certificate().clone())),
            files: reload.then_some(files),
            own: None,
        }))
    }

    /// A certificate signed by its own key, `kubelet.crt` and `kubelet.key` in `directory`. What is there
    /// is used again; what has expired or is damaged is replaced.
    ///
    /// # Errors
    /// The directory can't be written.
    pub fn made_here(
        directory: &Path,
        node_name: &str,
        clock: &WallClock,
    ) -> Result<Arc<Self>, SelfSignedError> {
        let own = SelfSigned::new(directory, node_name, clock);
        let pair = own.open()?;
        let files = CertificateFiles::new(&own.certificate(), &own.key());
        Ok(Arc::new(Self {
            current: RwLock::new(Some(pair.certificate().clone())),
            files: Some(files),
            own: Some(own),
        }))
    }

    fn empty() -> Self {
        Self {
            current: RwLock::new(None),
            files: None,
            own: None,
        }
    }

    /// The certificate as it is now.
    #[must_use]
    pub fn certificate(&self) -> Option<Certificate> {
        self.current.read().clone()
    }

    fn set(&self, certificate: &Certificate) {
        *self.current.write() = Some(certificate.clone());
    }

    /// Seconds until it expires, for `certificate_manager_server_ttl_seconds`.
    #[must_use]
    pub fn ttl_seconds(&self, now: Timestamp) -> f64 {
        let current = self.current.read();
        ttl_seconds(current.as_ref().map(Certificate::expires), now)
    }

    /// Loads what changed on disk, and replaces what is about to expire.
    fn refresh(&self) {
        if let Some(pair) = self.files.as_ref().and_then(CertificateFiles::changed) {
            self.set(pair.certificate());
        }
        if let Some(own) = &self.own
            && let Some(pair) = own.renewed(self.certificate().as_ref())
        {
            self.set(pair.certificate());
        }
    }
}

impl ResolvesServerCert for ServingCert {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.refresh();
        let current = self.current.read();
        current.as_ref().map(|shown| Arc::clone(shown.certified()))
    }
}

/// Input for a certificate that the cluster issues: `serverTLSBootstrap`.
#[derive(Clone)]
pub struct ClusterServing {
    /// The client of the API server.
    pub client: Client,
    /// `--cert-dir`.
    pub cert_dir: PathBuf,
    /// `tlsCertFile` and `tlsPrivateKeyFile`, shown until the cluster has issued one.
    pub files: Option<(PathBuf, PathBuf)>,
    /// Name of the node.
    pub node_name: Arc<str>,
    /// Names and addresses of the node. A change requires another certificate.
    pub names: watch::Receiver<ServingNames>,
    /// Whether names without an address are enough: the feature gate AllowDNSOnlyNodeCSR.
    pub dns_only: bool,
    /// Returns the wall time.
    pub clock: WallClock,
    /// The notice of what is awaited.
    pub notice: CertificateNotice,
    /// Hooks for metrics.
    pub hooks: CertificateHooks,
}

impl ClusterServing {
    /// The certificate, empty until the cluster has issued one, and the task that requests and
    /// renews it. The task never ends and may be dropped at any time.
    ///
    /// # Errors
    /// The directory can't be read or written.
    pub fn start(
        self,
    ) -> Result<(Arc<ServingCert>, impl Future<Output = Infallible> + Send), StoreError> {
        make_directory(&self.cert_dir)?;
        let store = PairStore::new(&self.cert_dir, "kubelet-server");
        let mut current = store.current()?;
        if let (None, Some((certificate, key))) = (&current, &self.files) {
            current = Some(read_pair(certificate, key)?);
        }
        let serving = Arc::new(ServingCert::empty());
        let current = current.map(|pair| pair.certificate().clone());
        if let Some(current) = &current {
            serving.set(current);
        }
        let shown = Arc::clone(&serving);
        let client = self.client.clone();
        let (wanted, follow) = wanted(self.node_name, self.names, self.dns_only);
        let rotation = Rotation {
            clients: CsrClients {
                own: Some(client),
                bootstrap: None,
            },
            store,
            purpose: CertificatePurpose::Serving,
            wanted,
            clock: self.clock,
            notice: self.notice,
            hooks: self.hooks,
            install: Box::new(move |certificate| shown.set(certificate)),
            current,
            arrived: None,
            foreign: false,
        };
        let task = async move {
            tokio::select! {
                never = rotation.run() => never,
                never = follow => never,
            }
        };
        Ok((serving, task))
    }
}

/// Maps names to the desired certificate, as they change.
fn wanted(
    node_name: Arc<str>,
    mut names: watch::Receiver<ServingNames>,
    dns_only: bool,
) -> (
    watch::Receiver<Option<CertificateTemplate>>,
    impl Future<Output = Infallible> + Send,
) {
    let want = move |names: &ServingNames| {
        let wanted = names.suffice(dns_only);
        wanted.then(|| CertificateTemplate::node(&node_name).with(names))
    };
    let (sender, receiver) = watch::channel(want(&names.borrow_and_update()));
    let follow = async move {
        while names.changed().await.is_ok() {
            let now = want(&names.borrow_and_update());
            sender.send_if_modified(|before| {
                let changed = *before != now;
                *before = now;
                changed
            });
        }
        std::future::pending().await
    };
    (receiver, follow)
}
