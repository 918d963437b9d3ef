//! The client certificate: a cell whose content may be replaced at any time.

use std::{fmt, sync::Arc};

use parking_lot::RwLock;
use rustls::{
    SignatureScheme,
    client::ResolvesClientCert,
    crypto::aws_lc_rs::sign::any_supported_type,
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{Error as PemError, PemObject as _},
    },
    sign::CertifiedKey,
};

/// Why texts are no certificate with its key.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// There is no certificate.
    #[error("no CERTIFICATE in the PEM data of the certificate")]
    NoCertificate,
    /// The certificate is no PEM.
    #[error("invalid PEM data in the certificate")]
    Certificate(#[source] PemError),
    /// There is no key.
    #[error("no private key in the PEM data of the key")]
    NoKey,
    /// The key is no PEM.
    #[error("invalid PEM data in the key")]
    Key(#[source] PemError),
    /// The key is of no kind that is supported.
    #[error("cannot use the private key")]
    Unusable(#[source] rustls::Error),
    /// They are not of one pair.
    #[error("the private key does not belong to the certificate")]
    Mismatch(#[source] rustls::Error),
}

/// The client certificate of a client, or none. Clones share the content: a task that renews the
/// certificate sets the new one, and calls [`Client::reload`](crate::Client::reload).
#[derive(Clone, Default)]
pub struct ClientIdentity(Arc<RwLock<Option<Arc<CertifiedKey>>>>);

impl ClientIdentity {
    /// A cell that holds no certificate yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads a chain, the owner's certificate first, and its key.
    ///
    /// # Errors
    /// One of them is missing or damaged, or they don't belong together.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, IdentityError> {
        let identity = Self::new();
        identity.set_pem(certificates, key)?;
        Ok(identity)
    }

    /// Replaces the certificate.
    ///
    /// # Errors
    /// As [`ClientIdentity::from_pem`]; the old one stays.
    pub(crate) fn set_pem(&self, certificates: &[u8], key: &[u8]) -> Result<(), IdentityError> {
        self.set(Some(certified_key(certificates, key)?));
        Ok(())
    }

    /// Replaces the certificate.
    pub fn set(&self, certified: Option<Arc<CertifiedKey>>) {
        *self.0.write() = certified;
    }

    /// The certificate that the next connection shows.
    #[must_use]
    pub fn current(&self) -> Option<Arc<CertifiedKey>> {
        self.0.read().clone()
    }
}

impl fmt::Debug for ClientIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.current().map_or("none", |_| "..");
        write!(f, "ClientIdentity({state})")
    }
}

impl ResolvesClientCert for ClientIdentity {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.current()
    }

    fn has_certs(&self) -> bool {
        self.current().is_some()
    }
}

fn certified_key(certificates: &[u8], key: &[u8]) -> Result<Arc<CertifiedKey>, IdentityError> {
    let chain = CertificateDer::pem_slice_iter(certificates)
        .collect::<Result<Vec<_>, _>>()
        .map_err(IdentityError::Certificate)?;
    if chain.is_empty() {
        return Err(IdentityError::NoCertificate);
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| match error {
        PemError::NoItemsFound => IdentityError::NoKey,
        error => IdentityError::Key(error),
    })?;
    let key = any_supported_type(&key).map_err(IdentityError::Unusable)?;
    let certified = CertifiedKey::new(chain, key);
    certified.keys_match().map_err(IdentityError::Mismatch)?;
    Ok(Arc::new(certified))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (String, String) {
        let made = rcgen::generate_simple_self_signed(["node".to_owned()]).unwrap();
        let (certificate, key) = (made.cert, made.signing_key);
        (
            pem("CERTIFICATE", certificate.der()),
            pem("PRIVATE KEY", &key.serialize_der()),
        )
    }

    fn pem(label: &str, der: &[u8]) -> String {
        use base64::Engine as _;
        let body = base64::engine::general_purpose::STANDARD.encode(der);
        format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
    }

    #[test]
    fn a_bad_pair_leaves_the_old_one_in_place() {
        let (certificate, key) = pair();
        let (_, other_key) = pair();
        let identity = ClientIdentity::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
        let set = |certificate: &str, key: &str| {
            identity
                .set_pem(certificate.as_bytes(), key.as_bytes())
                .unwrap_err()
        };
        assert!(matches!(set("", &key), IdentityError::NoCertificate));
        assert!(matches!(set(&certificate, "hello"), IdentityError::NoKey));
        assert!(matches!(
            set(&certificate, &other_key),
            IdentityError::Mismatch(_)
        ));
        assert!(identity.has_certs());
        assert_eq!(format!("{identity:?}"), "ClientIdentity(..)");
    }

    #[test]
    fn certificate_and_key_may_stand_in_one_file() {
        let (certificate, key) = pair();
        let both = format!("{key}{certificate}");
        assert!(ClientIdentity::from_pem(both.as_bytes(), both.as_bytes()).is_ok());
    }
}
