//! The authorities that client certificates are verified against: a bundle of certificates in a
//! file that may change while the agent runs.

use std::{
    fmt, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use aws_lc_rs::digest::{SHA256, digest};
use parking_lot::Mutex;
use rubelet_http_core::{clock, user::User};
use rustls::{
    DistinguishedName, RootCertStore,
    pki_types::{
        CertificateDer, UnixTime,
        pem::{self, PemObject as _},
    },
    server::{WebPkiClientVerifier, danger::ClientCertVerifier},
};
use tokio::time::Instant;

use super::{crypto::provider, subject};

/// The file is checked when a client connects, at most this often: an idle port does nothing.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// The extra value by which a certificate is identified with its user, as in the API server.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// Why a bundle can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ClientCaError {
    /// The file can't be read.
    #[error("cannot read the client CA file {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error.
        #[source]
        source: io::Error,
    },
    /// The file is not PEM.
    #[error("the client CA file {} is not valid PEM", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// The parser's error.
        #[source]
        source: pem::Error,
    },
    /// The file has no certificate.
    #[error(
        "the client CA file {} holds no certificate; put the authority's certificate there in PEM",
        .0.display()
    )]
    Empty(PathBuf),
    /// A certificate of the file is invalid.
    #[error("cannot use certificate {number} of the client CA file {}", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// The number of the certificate, from 1.
        number: usize,
        /// The error of the TLS library.
        #[source]
        source: rustls::Error,
    },
    /// The bundle as a whole is invalid.
    #[error("cannot use the client CA file {}", path.display())]
    Verifier {
        /// The file.
        path: PathBuf,
        /// The error of the TLS library.
        #[source]
        source: rustls::server::VerifierBuilderError,
    },
}

/// `authentication.x509.clientCAFile`. If a bundle becomes unreadable, the last good one stays in
/// use.
pub struct ClientCa {
    path: PathBuf,
    state: Mutex<LoadedAuthorities>,
}

struct LoadedAuthorities {
    bundle: Arc<Bundle>,
    mark: Option<Mark>,
    looked: Instant,
}

/// Identifies a version of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    inode: u64,
    length: u64,
    changed: (i64, i64),
}

impl ClientCa {
    /// Reads the bundle.
    ///
    /// # Errors
    /// The file can't be read, or is not one or more certificates in PEM.
    pub async fn load(path: impl Into<PathBuf>) -> Result<Self, ClientCaError> {
        let path = path.into();
        let mark = mark(&path).await;
        let bundle = Arc::new(read(&path).await?);
        let looked = Instant::now();
        let state = LoadedAuthorities {
            bundle,
            mark,
            looked,
        };
        Ok(Self {
            path,
            state: Mutex::new(state),
        })
    }

    /// The current bundle, at most ten seconds old.
    pub(super) async fn bundle(&self) -> Arc<Bundle> {
        let before = {
            let mut state = self.state();
            if state.looked.elapsed() < LOOK_AGAIN {
                return Arc::clone(&state.bundle);
            }
            // Other callers use the previous bundle while this one reads the file.
            state.looked = Instant::now();
            state.mark
        };
        let now = mark(&self.path).await;
        if now.is_none() || now == before {
            return Arc::clone(&self.state().bundle);
        }
        let read = read(&self.path).await;
        let mut state = self.state();
        state.mark = now;
        match read {
            Ok(bundle) => {
                tracing::info!(file = %self.path.display(), "Reloaded the client CA file");
                state.bundle = Arc::new(bundle);
            }
            Err(error) => {
                let error = rubelet_base::ErrorChain(&error);
                tracing::warn!(%error, "Cannot reload the client CA file; the previous authorities stay in use");
            }
        }
        Arc::clone(&state.bundle)
    }

    fn state(&self) -> parking_lot::MutexGuard<'_, LoadedAuthorities> {
        self.state.lock()
    }
}

impl fmt::Debug for ClientCa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClientCa({})", self.path.display())
    }
}

async fn mark(path: &Path) -> Option<Mark> {
    let metadata = tokio::fs::metadata(path).await.ok()?;
    Some(Mark {
        inode: metadata.ino(),
        length: metadata.len(),
        changed: (metadata.ctime(), metadata.ctime_nsec()),
    })
}

async fn read(path: &Path) -> Result<Bundle, ClientCaError> {
    let pem = tokio::fs::read(path)
        .await
        .map_err(|source| ClientCaError::Read {
            path: path.to_owned(),
            source,
        })?;
    Bundle::from_pem(path, &pem)
}

/// One version of the authorities.
pub(super) struct Bundle {
    verifier: Arc<dyn ClientCertVerifier>,
}

impl Bundle {
    fn from_pem(path: &Path, pem: &[u8]) -> Result<Self, ClientCaError> {
        let owned = || path.to_owned();
        let mut roots = RootCertStore::empty();
        for (index, certificate) in CertificateDer::pem_slice_iter(pem).enumerate() {
            let certificate = certificate.map_err(|source| ClientCaError::Pem {
                path: owned(),
                source,
            })?;
            roots
                .add(certificate)
                .map_err(|source| ClientCaError::Certificate {
                    path: owned(),
                    number: index + 1,
                    source,
                })?;
        }
        if roots.is_empty() {
            return Err(ClientCaError::Empty(owned()));
        }
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider())
            .build()
            .map_err(|source| ClientCaError::Verifier {
                path: owned(),
                source,
            })?;
        Ok(Self { verifier })
    }

    /// Names of the authorities: clients choose their certificate by them.
    pub(super) fn names(&self) -> Vec<DistinguishedName> {
        self.verifier.root_hint_subjects().to_vec()
    }

    /// The user of a client certificate: `None` if it is valid and names no user.
    ///
    /// `chain` is the client's own certificate, and the others that it sent. The handshake has
    /// proven that the client holds the key.
    pub(super) fn user(&self, chain: &[CertificateDer<'_>]) -> Result<Option<User>, String> {
        let Some((own, others)) = chain.split_first() else {
            return Ok(None);
        };
        let seconds = u64::try_from(clock::now().as_second()).unwrap_or_default();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        self.verifier
            .verify_client_cert(own, others, now)
            .map_err(|error| error.to_string())?;
        let subject = subject::subject(own)?;
        if subject.common_name.is_empty() {
            return Ok(None);
        }
        let id = format!("X509SHA256={}", hex::encode(digest(&SHA256, own)));
        Ok(Some(User {
            name: subject.common_name,
            uid: subject.uid.unwrap_or_default(),
            groups: subject.organizations,
            extra: [(CREDENTIAL_ID.to_owned(), vec![id])].into(),
        }))
    }
}
