//! The client certificate for the API server: found, requested, renewed.
//!
//! Source of the rules: `buildKubeletClientConfig` in `cmd/kubelet/app/server.go` and
//! `pkg/kubelet/certificate/bootstrap` of Kubernetes 1.36. Unlike there, nothing ends the agent:
//! without approval, without the API server, and even after the certificate has expired, it keeps
//! requesting one, and pods keep running.

use super::key::CertificatePurpose;
use super::notice::{CertificateHooks, CertificateNotice};
use super::pair::{Certificate, PairError};
use super::rotation::{Bootstrap, CsrClients, Rotation};
use super::rules::{CertificateTemplate, is_valid, ttl_seconds};
use super::store::{PairStore, StoreError, make_directory, read_pair, write_file};
use crate::clock::WallClock;
use crate::kubeconfig::{Kubeconfig, KubeconfigError};
use crate::{Client, ClientConfig, ClientIdentity, ClientOptions, IdentitySource};
use jiff::Timestamp;
use parking_lot::Mutex;
use rubelet_base::ErrorChain;
use std::convert::Infallible;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::watch;

/// Why there is no client certificate. Waiting does not help against any of these.
#[derive(Debug, thiserror::Error)]
pub enum ClientCertificateError {
    /// A kubeconfig can't be used.
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    /// A kubeconfig leads to no client.
    #[error("cannot use {}", path.display())]
    Client {
        /// Which.
        path: PathBuf,
        /// Why.
        source: crate::ClientError,
    },
    /// The certificates on disk can't be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The certificate in the kubeconfig is damaged.
    #[error("cannot use the client certificate of {}", path.display())]
    Certificate {
        /// The kubeconfig.
        path: PathBuf,
        /// The error.
        source: PairError,
    },
}

/// Input of certificate management at the start.
#[derive(Clone)]
pub struct ClientSetup {
    /// `--kubeconfig`.
    pub kubeconfig: PathBuf,
    /// `--bootstrap-kubeconfig`.
    pub bootstrap_kubeconfig: Option<PathBuf>,
    /// `--cert-dir`.
    pub cert_dir: PathBuf,
    /// Name of the node.
    pub node_name: Arc<str>,
    /// `rotateCertificates`.
    pub rotate: bool,
    /// For the client that requests the first certificate; its clock is the one that counts.
    pub options: ClientOptions,
    /// The notice of what is awaited.
    pub notice: CertificateNotice,
    /// Hooks for metrics.
    pub hooks: CertificateHooks,
}

impl fmt::Debug for ClientSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientSetup")
            .field("kubeconfig", &self.kubeconfig)
            .field("bootstrap_kubeconfig", &self.bootstrap_kubeconfig)
            .field("cert_dir", &self.cert_dir)
            .finish_non_exhaustive()
    }
}

/// When the certificate in use expires; shared with the metrics.
#[derive(Clone, Debug, Default)]
pub struct Expiry(Arc<Mutex<Option<Timestamp>>>);

impl Expiry {
    fn set(&self, at: Timestamp) {
        *self.0.lock() = Some(at);
    }

    /// Seconds until then, for `certificate_manager_client_ttl_seconds`; infinite without a
    /// certificate.
    #[must_use]
    pub fn ttl_seconds(&self, now: Timestamp) -> f64 {
        ttl_seconds(*self.0.lock(), now)
    }
}

/// The node's client certificate, from the start of the agent to its end:
///
/// 1. [`config`](Self::config) returns how the API server is reached, once there is a certificate;
/// 2. the caller makes a [`Client`] of that;
/// 3. [`renew`](Self::renew) keeps the certificate fresh.
#[derive(Debug)]
pub struct ClientCertificate {
    setup: ClientSetup,
    store: PairStore,
    expiry: Expiry,
    kept: Option<RotatedCertificate>,
}

/// A certificate to be renewed.
#[derive(Debug)]
struct RotatedCertificate {
    identity: ClientIdentity,
    current: Certificate,
    foreign: bool,
}

impl ClientCertificate {
    /// Nothing is read yet.
    #[must_use]
    pub fn new(setup: ClientSetup) -> Self {
        let store = PairStore::new(&setup.cert_dir, "kubelet-client");
        Self {
            setup,
            store,
            expiry: Expiry::default(),
            kept: None,
        }
    }

    /// When the certificate expires.
    #[must_use]
    pub fn expiry(&self) -> Expiry {
        self.expiry.clone()
    }

    fn clock(&self) -> &WallClock {
        &self.setup.options.clock
    }

    fn now(&self) -> Timestamp {
        (self.clock())()
    }

    /// The configuration of the client. With a bootstrap kubeconfig and without a valid certificate
    /// this requests one, and waits until it is approved: pods that need no API server
    /// should be started before. May be dropped while it waits, and called again.
    ///
    /// # Errors
    /// A file can't be read or written, or something in it can't be used.
    pub async fn config(&mut self) -> Result<ClientConfig, ClientCertificateError> {
        if let Some(bootstrap) = self.setup.bootstrap_kubeconfig.clone()
            && !self.kubeconfig_is_good()
        {
            self.bootstrap(&bootstrap).await?;
        }
        let path = &self.setup.kubeconfig;
        let config = Kubeconfig::load(path)?.client_config(None)?;
        let Some(given) = self.certificate_of(&config)? else {
            if self.setup.rotate {
                let path = path.display();
                tracing::info!("{path} contains no client certificate; nothing to rotate");
            }
            return Ok(config);
        };
        self.expiry.set(given.expires());
        if !self.setup.rotate {
            return Ok(config);
        }
        let (current, foreign) = match self.stored() {
            Some(stored) => (stored, false),
            None => (given, true),
        };
        self.expiry.set(current.expires());
        let identity = ClientIdentity::new();
        identity.set(Some(Arc::clone(current.certified())));
        let config = config.with_identity(identity.clone());
        self.kept = Some(RotatedCertificate {
            identity,
            current,
            foreign,
        });
        Ok(config)
    }

    /// Renews the certificate before it expires: `client` is the one made of the configuration that
    /// [`config`](Self::config) gave, and shows the new certificate from then on. Never ends. Without
    /// `rotateCertificates`, and with a kubeconfig that has no certificate, this only waits.
    pub async fn renew(self, client: Client) -> Infallible {
        let Self {
            setup,
            store,
            expiry,
            kept,
        } = self;
        let Some(RotatedCertificate {
            identity,
            current,
            foreign,
        }) = kept
        else {
            return std::future::pending().await;
        };
        let (_never_changed, wanted) =
            watch::channel(Some(CertificateTemplate::node(&setup.node_name)));
        let bootstrap = setup
            .bootstrap_kubeconfig
            .clone()
            .map(|path| bootstrap_client(path, setup.options.clone()));
        let reloaded = client.clone();
        let rotation = Rotation {
            clients: CsrClients {
                own: Some(client),
                bootstrap,
            },
            store,
            purpose: CertificatePurpose::Client,
            wanted,
            clock: WallClock::clone(&setup.options.clock),
            notice: setup.notice,
            hooks: setup.hooks,
            install: Box::new(move |certificate| {
                identity.set(Some(Arc::clone(certificate.certified())));
                expiry.set(certificate.expires());
                reloaded.reload();
            }),
            current: Some(current),
            arrived: None,
            foreign,
        };
        rotation.run().await
    }

    /// Whether the kubeconfig is there and has a certificate that is still valid, and is not that of
    /// a node of another name.
    fn kubeconfig_is_good(&self) -> bool {
        let path = &self.setup.kubeconfig;
        if !path.exists() {
            return false;
        }
        let certificate = Kubeconfig::load(path)
            .and_then(|file| file.client_config(None))
            .map_err(ClientCertificateError::from)
            .and_then(|config| self.certificate_of(&config));
        let problem = match certificate {
            Ok(Some(certificate)) => match self.problem(&certificate) {
                None => return true,
                Some(problem) => problem,
            },
            Ok(None) => "it contains no client certificate".to_owned(),
            Err(error) => ErrorChain(&error).to_string(),
        };
        tracing::info!("Ignoring {}: {problem}", path.display());
        false
    }

    fn problem(&self, certificate: &Certificate) -> Option<String> {
        let expires = certificate.expires();
        if !is_valid(expires, self.now()) {
            return Some(format!("its certificate expired at {expires}"));
        }
        let name = &certificate.leaf().common_name;
        let other = name.starts_with("system:node:")
            && *name != CertificateTemplate::node(&self.setup.node_name).common_name;
        other.then(|| format!("its certificate was issued to {name}"))
    }

    /// The certificate with which a configuration calls.
    fn certificate_of(
        &self,
        config: &ClientConfig,
    ) -> Result<Option<Certificate>, ClientCertificateError> {
        match &config.identity {
            IdentitySource::None => Ok(None),
            IdentitySource::Files { certificate, key } => {
                Ok(Some(read_pair(certificate, key)?.certificate().clone()))
            }
            IdentitySource::Shared(identity) => identity
                .current()
                .map(Certificate::new)
                .transpose()
                .map_err(|source| ClientCertificateError::Certificate {
                    path: self.setup.kubeconfig.clone(),
                    source,
                }),
        }
    }

    /// The newest certificate in the directory, if it can be used.
    fn stored(&self) -> Option<Certificate> {
        let current = match self.store.current() {
            Ok(pair) => pair?.certificate().clone(),
            Err(error) => {
                tracing::warn!("{}", ErrorChain(&error));
                return None;
            }
        };
        match self.problem(&current) {
            None => Some(current),
            Some(problem) => {
                let path = self.store.current_path();
                tracing::info!("Ignoring {}: {problem}", path.display());
                None
            }
        }
    }

    /// Gets a certificate with the bootstrap kubeconfig, and writes the kubeconfig that uses it.
    async fn bootstrap(&mut self, path: &Path) -> Result<(), ClientCertificateError> {
        // What is wrong with the file now is an error; what happens to it later is waited for.
        let template = Kubeconfig::load(path)?;
        let config = template.client_config(None)?;
        Client::new(config, self.setup.options.clone()).map_err(|source| {
            ClientCertificateError::Client {
                path: path.to_owned(),
                source,
            }
        })?;
        if self.stored().is_none() {
            let setup = &self.setup;
            let (_never_changed, wanted) = watch::channel(None);
            let mut rotation = Rotation {
                clients: CsrClients {
                    own: None,
                    bootstrap: Some(bootstrap_client(path.to_owned(), setup.options.clone())),
                },
                store: self.store.clone(),
                purpose: CertificatePurpose::Client,
                wanted,
                clock: WallClock::clone(self.clock()),
                notice: setup.notice.clone(),
                hooks: setup.hooks.clone(),
                install: Box::new(|_| {}),
                current: None,
                arrived: None,
                foreign: false,
            };
            rotation
                .first(&CertificateTemplate::node(&setup.node_name))
                .await;
        }
        let pair = self.store.current_path();
        let text = template.with_client_certificate(None, &pair, &pair)?;
        let kubeconfig = &self.setup.kubeconfig;
        if let Some(directory) = kubeconfig.parent() {
            make_directory(directory)?;
        }
        write_file(kubeconfig, text.as_bytes(), 0o600)?;
        tracing::info!("Wrote {}", kubeconfig.display());
        Ok(())
    }
}

/// Reads a bootstrap kubeconfig before each request: its token may have been replaced.
fn bootstrap_client(path: PathBuf, options: ClientOptions) -> Bootstrap {
    Box::new(move || {
        let config = Kubeconfig::load(&path)?.client_config(None)?;
        Ok(Client::new(config, options.clone())?)
    })
}
