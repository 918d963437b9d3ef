//! A certificate chain with its private key, and the contents of the first certificate.

use super::pem::section;
use jiff::Timestamp;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer as _;

/// Why a text is no certificate with its key.
#[derive(Debug, thiserror::Error)]
pub enum PairError {
    /// There is no certificate in it.
    #[error("no CERTIFICATE in the PEM data")]
    NoCertificate,
    /// There is no key in it.
    #[error("no private key in the PEM data")]
    NoKey,
    /// A section is no PEM.
    #[error("invalid PEM data")]
    Pem(#[source] rustls::pki_types::pem::Error),
    /// A certificate is no X.509.
    #[error("invalid certificate: {0}")]
    Certificate(String),
    /// The key is of a kind that can't be used.
    #[error("cannot use the private key")]
    Key(#[source] rustls::Error),
    /// Certificate and key are not of one pair.
    #[error("the private key does not belong to the certificate")]
    Mismatch(#[source] rustls::Error),
}

/// A certificate's contents about its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// CN of the subject.
    pub common_name: String,
    /// Each O of the subject.
    pub organizations: BTreeSet<String>,
    /// Names in the subject's alternative names.
    pub dns_names: BTreeSet<String>,
    /// Addresses in the subject's alternative names.
    pub addresses: BTreeSet<IpAddr>,
    /// From when on it is valid.
    pub not_before: Timestamp,
    /// Until when it is valid.
    pub not_after: Timestamp,
}

impl Leaf {
    fn read(certificate: &X509Certificate<'_>) -> Self {
        let subject = certificate.subject();
        let text = |value: &x509_parser::x509::AttributeTypeAndValue<'_>| {
            value.as_str().unwrap_or_default().to_owned()
        };
        let mut leaf = Self {
            common_name: subject
                .iter_common_name()
                .next()
                .map(text)
                .unwrap_or_default(),
            organizations: subject.iter_organization().map(text).collect(),
            dns_names: BTreeSet::new(),
            addresses: BTreeSet::new(),
            not_before: timestamp(certificate.validity().not_before.timestamp()),
            not_after: timestamp(certificate.validity().not_after.timestamp()),
        };
        let names = certificate.subject_alternative_name().ok().flatten();
        for name in names.iter().flat_map(|names| &names.value.general_names) {
            match name {
                GeneralName::DNSName(name) => {
                    leaf.dns_names.insert((*name).to_owned());
                }
                GeneralName::IPAddress(bytes) => leaf.addresses.extend(address(bytes)),
                _ => {}
            }
        }
        leaf
    }
}

fn timestamp(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX)
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => Some(IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?)),
        16 => Some(IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?)),
        _ => None,
    }
}

/// A certificate chain that can be shown: rustls has its key.
#[derive(Clone)]
pub struct Certificate {
    certified: Arc<CertifiedKey>,
    leaf: Leaf,
    expires: Timestamp,
}

impl Certificate {
    /// From the key and chain for rustls; reads the first certificate.
    ///
    /// # Errors
    /// A certificate is missing or damaged.
    pub fn new(certified: Arc<CertifiedKey>) -> Result<Self, PairError> {
        let first = certified.cert.first().ok_or(PairError::NoCertificate)?;
        let leaf = Leaf::read(&parsed(first)?);
        let mut expires = leaf.not_after;
        for certificate in &certified.cert[1..] {
            let validity = parsed(certificate)?.validity().not_after.timestamp();
            expires = expires.min(timestamp(validity));
        }
        Ok(Self {
            certified,
            leaf,
            expires,
        })
    }

    /// For rustls.
    #[must_use]
    pub fn certified(&self) -> &Arc<CertifiedKey> {
        &self.certified
    }

    /// The contents of the owner's certificate.
    #[must_use]
    pub fn leaf(&self) -> &Leaf {
        &self.leaf
    }

    /// When the first certificate of the chain expires.
    #[must_use]
    pub fn expires(&self) -> Timestamp {
        self.expires
    }

    /// DER of the owner's certificate.
    pub(super) fn der(&self) -> &[u8] {
        self.certified.cert.first().map_or(&[], |der| der.as_ref())
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Certificate({:?})", self.leaf)
    }
}

/// A certificate chain with its private key, as they are in files. They belong together.
#[derive(Clone)]
pub struct Pair {
    certificate: Certificate,
    key: Arc<PrivateKeyDer<'static>>,
}

impl Pair {
    /// Reads a chain and a key from PEM. Both may be in the same text.
    ///
    /// # Errors
    /// One of them is missing or damaged, or they don't belong together.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, PairError> {
        let chain = CertificateDer::pem_slice_iter(certificates)
            .collect::<Result<Vec<_>, _>>()
            .map_err(PairError::Pem)?;
        if chain.is_empty() {
            return Err(PairError::NoCertificate);
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| match error {
            rustls::pki_types::pem::Error::NoItemsFound => PairError::NoKey,
            error => PairError::Pem(error),
        })?;
        Self::new(chain, key)
    }

    /// A chain, the owner's certificate first, and its key.
    ///
    /// # Errors
    /// One of them is missing or damaged, or they don't belong together.
    pub fn new(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, PairError> {
        let signing = any_supported_type(&key).map_err(PairError::Key)?;
        let certified = CertifiedKey::new(chain, signing);
        certified.keys_match().map_err(PairError::Mismatch)?;
        Ok(Self {
            certificate: Certificate::new(Arc::new(certified))?,
            key: Arc::new(key),
        })
    }

    /// The certificate without its key.
    #[must_use]
    pub fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// The contents of the owner's certificate.
    #[must_use]
    pub fn leaf(&self) -> &Leaf {
        self.certificate.leaf()
    }

    /// The chain as PEM.
    pub(super) fn chain_pem(&self) -> String {
        let sections = self.certificate.certified.cert.iter();
        sections
            .map(|certificate| section("CERTIFICATE", certificate))
            .collect()
    }

    /// The key as PEM.
    pub(super) fn key_pem(&self) -> String {
        key_pem(&self.key)
    }
}

impl fmt::Debug for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pair({:?})", self.leaf())
    }
}

/// A private key as PEM, in the form it has.
pub(super) fn key_pem(key: &PrivateKeyDer<'_>) -> String {
    let label = match key {
        PrivateKeyDer::Pkcs1(_) => "RSA PRIVATE KEY",
        PrivateKeyDer::Sec1(_) => "EC PRIVATE KEY",
        _ => "PRIVATE KEY",
    };
    section(label, key.secret_der())
}

fn parsed<'a>(certificate: &'a CertificateDer<'_>) -> Result<X509Certificate<'a>, PairError> {
    let read = X509Certificate::from_der(certificate);
    let (_, certificate) = read.map_err(|error| PairError::Certificate(error.to_string()))?;
    Ok(certificate)
}
