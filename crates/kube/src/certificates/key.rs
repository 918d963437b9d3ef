//! A private key of the node, and the request for a certificate that it signs.

use super::pair::key_pem;
use super::pem::section;
use super::rules::Wanted;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, PublicKeyData as _, SanType};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use sha2::{Digest as _, Sha512_256};
use std::fmt;

/// Why there is no key or no request.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The text is no PEM with a private key.
    #[error("no private key in the PEM")]
    Pem(#[source] rustls::pki_types::pem::Error),
    /// The key is of a kind that can't sign.
    #[error("the private key can't be used")]
    Kind(#[source] rcgen::Error),
    /// A name can't stand in a certificate.
    #[error("{0:?} can't stand in a certificate")]
    Name(String, #[source] rcgen::Error),
    /// Signing failed.
    #[error("the request could not be signed")]
    Sign(#[source] rcgen::Error),
}

/// What a certificate is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To tell the API server who calls.
    Client,
    /// To be shown by the node's port.
    Serving,
}

impl Purpose {
    pub(super) const fn signer(self) -> &'static str {
        match self {
            Self::Client => "kubernetes.io/kube-apiserver-client-kubelet",
            Self::Serving => "kubernetes.io/kubelet-serving",
        }
    }

    /// What the key may be used for. Source of the rule: `DefaultKubeletClientGetUsages` and
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

    /// DER of the public key, as it stands in a request.
    pub(super) fn public(&self) -> Vec<u8> {
        self.pair.subject_public_key_info()
    }

    fn is_rsa(&self) -> bool {
        *self.pair.algorithm() == rcgen::PKCS_RSA_SHA256
    }

    pub(super) fn usages(&self, purpose: Purpose) -> Vec<&'static str> {
        purpose.usages(self.is_rsa())
    }

    /// The request for a certificate, as PEM.
    pub(super) fn request(&self, wanted: &Wanted) -> Result<String, KeyError> {
        let request = subject(wanted)?
            .serialize_request(&self.pair)
            .map_err(KeyError::Sign)?;
        Ok(section("CERTIFICATE REQUEST", request.der()))
    }

    /// The name of the request's object. It follows from the key and from what is asked for, so that
    /// a request is found again after a restart. Source of the rule: `digestedName` in
    /// `pkg/kubelet/certificate/bootstrap`; names of servers are added at the end.
    pub(super) fn request_name(&self, wanted: &Wanted, purpose: Purpose) -> String {
        let mut digest = Sha512_256::new();
        let mut write = |part: &[u8]| {
            digest.update(URL_SAFE_NO_PAD.encode(part));
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
        format!("node-csr-{}", URL_SAFE_NO_PAD.encode(digest.finalize()))
    }
}

impl fmt::Debug for NodeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NodeKey")
    }
}

/// Subject and alternative names.
pub(super) fn subject(wanted: &Wanted) -> Result<CertificateParams, KeyError> {
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
mod tests {
    use super::{NodeKey, Purpose};
    use crate::certificates::pem::section;
    use crate::certificates::rules::{ServingNames, Wanted};
    use rustls::pki_types::CertificateSigningRequestDer;
    use rustls::pki_types::pem::PemObject as _;
    use x509_parser::certification_request::X509CertificationRequest;
    use x509_parser::prelude::FromDer as _;

    #[test]
    fn a_request_says_who_the_node_is() {
        let key = NodeKey::generate().unwrap();
        let names = ServingNames::of_node([("Hostname", "a"), ("InternalIP", "10.0.0.1")]);
        for (wanted, extensions) in [(Wanted::node("a"), 0), (Wanted::node("a").with(&names), 1)] {
            let pem = key.request(&wanted).unwrap();
            let der = CertificateSigningRequestDer::from_pem_slice(pem.as_bytes()).unwrap();
            let (_, request) = X509CertificationRequest::from_der(&der).unwrap();
            let info = &request.certification_request_info;
            assert_eq!(info.subject.to_string(), "O=system:nodes, CN=system:node:a");
            assert_eq!(info.subject_pki.raw, key.public());
            let found = request.requested_extensions().map_or(0, Iterator::count);
            assert_eq!(found, extensions);
        }
    }

    #[test]
    fn the_name_follows_from_the_key_and_the_subject() {
        let key = NodeKey::generate().unwrap();
        let again = NodeKey::from_pem(key.pem().as_bytes()).unwrap();
        let name = key.request_name(&Wanted::node("a"), Purpose::Client);
        assert!(name.starts_with("node-csr-") && name.len() == 52, "{name}");
        assert_eq!(
            again.request_name(&Wanted::node("a"), Purpose::Client),
            name
        );
        let other = NodeKey::generate().unwrap();
        for different in [
            key.request_name(&Wanted::node("b"), Purpose::Client),
            key.request_name(&Wanted::node("a"), Purpose::Serving),
            other.request_name(&Wanted::node("a"), Purpose::Client),
        ] {
            assert_ne!(different, name);
        }
    }

    #[test]
    fn a_key_that_a_kubelet_left_is_used() {
        let key = NodeKey::generate().unwrap();
        let der = key.der();
        let pkcs8 = der.secret_der();
        // PKCS#8 holds the form that Go writes: version 1, and 32 bytes of key.
        let mark = [0x02, 0x01, 0x01, 0x04, 0x20];
        let at = pkcs8.windows(5).position(|bytes| bytes == mark).unwrap() - 2;
        let pem = section("EC PRIVATE KEY", &pkcs8[at..]);
        let left = NodeKey::from_pem(pem.as_bytes()).unwrap();
        assert_eq!(left.public(), key.public());
        let name = |key: &NodeKey| key.request_name(&Wanted::node("a"), Purpose::Client);
        assert_eq!(name(&left), name(&key));
        assert!(left.request(&Wanted::node("a")).is_ok());
        assert_eq!(left.pem(), pem);
    }

    #[test]
    fn the_usages_are_upstreams() {
        let key = NodeKey::generate().unwrap();
        assert_eq!(
            key.usages(Purpose::Client),
            ["digital signature", "client auth"]
        );
        assert_eq!(
            Purpose::Serving.usages(true),
            ["digital signature", "server auth", "key encipherment"]
        );
    }

    #[test]
    fn the_key_is_not_shown() {
        let key = NodeKey::generate().unwrap();
        assert_eq!(format!("{key:?}"), "NodeKey");
    }
}
