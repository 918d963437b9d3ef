//! TLS towards the API server.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use rubelet_tls::{AcceptAnyServer, client_config};
use rustls::{
    CertificateError, ClientConfig, RootCertStore,
    client::Resumption,
    pki_types::{CertificateDer, pem::PemObject as _},
};

use crate::{config::Roots, identity::ClientIdentity};

/// Why certificate authorities can't be used.
#[derive(Debug, thiserror::Error)]
pub enum RootsError {
    /// The file can't be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// There is no certificate in it.
    #[error("no CA certificate in {0}")]
    Empty(String),
    /// This machine has none, and the configuration names none.
    #[error(
        "no CA certificates are installed on this machine; install ca-certificates or set certificate-authority"
    )]
    NoneInstalled,
}

/// Makes the configuration of handshakes, again when the authorities have changed.
pub(super) struct Tls {
    roots: Roots,
    insecure: bool,
    identity: ClientIdentity,
    /// The last content of the files, and the TLS configuration made from it.
    made: Mutex<(Vec<u8>, Arc<ClientConfig>)>,
}

impl Tls {
    pub(super) fn new(
        roots: Roots,
        insecure: bool,
        identity: ClientIdentity,
    ) -> Result<Self, RootsError> {
        let read = match &roots {
            Roots::File(path) if !insecure => {
                std::fs::read(path).map_err(|e| unreadable(path, e))?
            }
            _ => Vec::new(),
        };
        let config = Arc::new(config(&roots, &read, insecure, &identity)?);
        Ok(Self {
            roots,
            insecure,
            identity,
            made: Mutex::new((read, config)),
        })
    }

    /// The configuration of a handshake now. A file that has become bad changes nothing.
    pub(super) async fn config(&self) -> Arc<ClientConfig> {
        let Roots::File(path) = &self.roots else {
            return self.made().1.clone();
        };
        if self.insecure {
            return self.made().1.clone();
        }
        let read = tokio::fs::read(path).await;
        let mut made = self.made();
        let changed = read
            .map_err(|error| unreadable(path, error))
            .and_then(|read| {
                if read == made.0 {
                    return Ok(None);
                }
                let config = config(&self.roots, &read, self.insecure, &self.identity)?;
                Ok(Some((read, Arc::new(config))))
            });
        match changed {
            Ok(None) => {}
            Ok(Some(new)) => *made = new,
            Err(error) => tracing::warn!(
                error = %rubelet_base::ErrorChain(&error),
                "Cannot reload the certificate authorities of the API server; the previous ones stay in use"
            ),
        }
        made.1.clone()
    }

    fn made(&self) -> parking_lot::MutexGuard<'_, (Vec<u8>, Arc<ClientConfig>)> {
        self.made.lock()
    }
}

/// Advice about a failed handshake. A certificate that is not valid yet or any more is often a
/// right one on a machine with a wrong clock.
pub(super) fn advice(error: &io::Error) -> &'static str {
    let inner = error.get_ref().and_then(|error| error.downcast_ref());
    match inner {
        Some(rustls::Error::InvalidCertificate(
            CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. }
            | CertificateError::Expired
            | CertificateError::ExpiredContext { .. },
        )) => " (compare the clocks of this machine and of the API server)",
        _ => "",
    }
}

fn unreadable(path: &Path, source: io::Error) -> RootsError {
    let path = path.to_owned();
    RootsError::Read { path, source }
}

fn config(
    roots: &Roots,
    file: &[u8],
    insecure: bool,
    identity: &ClientIdentity,
) -> Result<ClientConfig, RootsError> {
    let builder = client_config();
    let builder = if insecure {
        let any = Arc::new(AcceptAnyServer);
        builder.dangerous().with_custom_certificate_verifier(any)
    } else {
        builder.with_root_certificates(match roots {
            Roots::System => installed()?,
            Roots::Pem(pem) => authorities(pem, "the inline PEM")?,
            Roots::File(path) => authorities(file, &path.display().to_string())?,
        })
    };
    let mut config = builder.with_client_cert_resolver(Arc::new(identity.clone()));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    // A resumed session would keep the client certificate of the first one.
    config.resumption = Resumption::disabled();
    Ok(config)
}

fn authorities(pem: &[u8], origin: &str) -> Result<RootCertStore, RootsError> {
    let mut store = RootCertStore::empty();
    // As upstream does it, what can't be used is passed over as long as something is left.
    let certificates = CertificateDer::pem_slice_iter(pem).filter_map(Result::ok);
    let (added, _) = store.add_parsable_certificates(certificates);
    if added == 0 {
        return Err(RootsError::Empty(origin.to_owned()));
    }
    Ok(store)
}

fn installed() -> Result<RootCertStore, RootsError> {
    let mut store = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    let (added, _) = store.add_parsable_certificates(found.certs);
    if added == 0 {
        return Err(RootsError::NoneInstalled);
    }
    Ok(store)
}
