//! A private key of the node, and the request for a certificate that it signs.

use super::pair::key_pem;
use super::pem::section;
use super::rules::CertificateTemplate;
use aws_lc_rs::digest::{Context, SHA512_256};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, PublicKeyData as _, SanType};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::fmt;

/// Why there is no key or no request.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The text is no PEM with a private key.
    #[error("no private key in the PEM data")]
    Pem(#[source] rustls::pki_types::pem::Error),
    /// The key is of a kind that can't sign.
    #[error("cannot use the private key")]
    Kind(#[source] rcgen::Error),
    /// A name can't be in a certificate.
    #[error("a certificate cannot contain the name {0:?}")]
    Name(String, #[source] rcgen::Error),
    /// Signing failed.
    #[error("cannot sign the certificate request")]
    Sign(#[source] rcgen::Error),
}

/// The purpose of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CertificatePurpose {
    /// For the node as a client of the API server.
    Client,
    /// To be shown by the kubelet API (port 10250).
    Serving,
}

impl CertificatePurpose {
    pub(super) const fn signer(self) -> &'static str {
        match self {
            Self::Client => "kubernetes.io/kube-apiserver-client-kubelet",
            Self::Serving => "kubernetes.io/kubelet-serving",
        }
    }

    /// The usages of the key. Source of the rule: `DefaultKubeletClientGetUsages` and
    /// `DefaultKubeletServingGetUsages` in `k8s.io/client-go/util/certificate`.
    fn usages(self, rsa: bool) -> Vec<&'static str> {
        let own = match self {
            Self::Client => "client auth",
            Self::Serving => "server auth",
        };
        let mut usages = vec!["digital signature", own];
        if rsa {
            usages.push("key encipherment");
        }
        usages
    }
}

/// A private key of the node.
pub(super) struct NodeKey {
    pair: KeyPair,
    der: PrivateKeyDer<'static>,
}

impl NodeKey {
    /// A new key on the curve P-256.
    pub(super) fn generate() -> Result<Self, KeyError> {
        let pair = KeyPair::generate().map_err(KeyError::Kind)?;
        let der = PrivatePkcs8KeyDer::from(pair.serialize_der()).into();
        Ok(Self { pair, der })
    }

    pub(super) fn from_pem(text: &[u8]) -> Result<Self, KeyError> {
        Self::from_der(PrivateKeyDer::from_pem_slice(text).map_err(KeyError::Pem)?)
    }

    pub(super) fn from_der(der: PrivateKeyDer<'static>) -> Result<Self, KeyError> {
        let pair = KeyPair::try_from(&der).map_err(KeyError::Kind)?;
        Ok(Self { pair, der })
    }

    pub(super) fn pem(&self) -> String {
        key_pem(&self.der)
    }

    pub(super) fn der(&self) -> PrivateKeyDer<'static> {
        self.der.clone_key()
    }

    pub(super) fn pair(&self) -> &KeyPair {
        &self.pair
    }

    /// DER of the public key, as it is in a request.
    pub(super) fn public(&self) -> Vec<u8> {
        self.pair.subject_public_key_info()
    }

    fn is_rsa(&self) -> bool {
        *self.pair.algorithm() == rcgen::PKCS_RSA_SHA256
    }

    pub(super) fn usages(&self, purpose: CertificatePurpose) -> Vec<&'static str> {
        purpose.usages(self.is_rsa())
    }

    /// The request for a certificate, as PEM.
    pub(super) fn request(&self, wanted: &CertificateTemplate) -> Result<String, KeyError> {
        let request = subject(wanted)?
            .serialize_request(&self.pair)
            .map_err(KeyError::Sign)?;
        Ok(section("CERTIFICATE REQUEST", request.der()))
    }

    /// The name of the request's object. It follows from the key and from the requested contents,
    /// so that a request is found again after a restart. Source of the rule: `digestedName` in
    /// `pkg/kubelet/certificate/bootstrap`; names of servers are added at the end.
    pub(super) fn request_name(
        &self,
        wanted: &CertificateTemplate,
        purpose: CertificatePurpose,
    ) -> String {
        let mut digest = Context::new(&SHA512_256);
        let mut write = |part: &[u8]| {
            digest.update(URL_SAFE_NO_PAD.encode(part).as_bytes());
            digest.update(b"|");
        };
        write(&self.public());
        write(wanted.common_name.as_bytes());
        for group in &wanted.organizations {
            write(group.as_bytes());
        }
        for usage in self.usages(purpose) {
            write(usage.as_bytes());
        }
        for name in &wanted.dns_names {
            write(name.as_bytes());
        }
        for address in &wanted.addresses {
            write(address.to_string().as_bytes());
        }
        format!("node-csr-{}", URL_SAFE_NO_PAD.encode(digest.finish()))
    }
}

impl fmt::Debug for NodeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NodeKey")
    }
}

/// Subject and alternative names.
pub(super) fn subject(wanted: &CertificateTemplate) -> Result<CertificateParams, KeyError> {
    let mut params = CertificateParams::default();
    let mut name = DistinguishedName::new();
    for group in &wanted.organizations {
        name.push(DnType::OrganizationName, group.as_str());
    }
    name.push(DnType::CommonName, wanted.common_name.as_str());
    params.distinguished_name = name;
    for dns in &wanted.dns_names {
        let name = dns.as_str().try_into();
        let name = name.map_err(|error| KeyError::Name(dns.clone(), error))?;
        params.subject_alt_names.push(SanType::DnsName(name));
    }
    for address in &wanted.addresses {
        params.subject_alt_names.push(SanType::IpAddress(*address));
    }
    Ok(params)
}

#[cfg(test)]
mod tests;
