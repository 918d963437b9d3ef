//! The cluster's certificate authority: issues the certificates of the server, of users and of nodes,
//! and signs certificate requests.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertificateSigningRequestParams,
    CertifiedIssuer, DnType, DnValue, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};
use rustls::{
    RootCertStore, ServerConfig,
    crypto::CryptoProvider,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
    server::WebPkiClientVerifier,
};
use x509_parser::{oid_registry, prelude::FromDer as _};

use crate::{base64, user::User};

/// A certificate with its key, both as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// The certificate.
    pub certificate_pem: String,
    /// The private key.
    pub key_pem: String,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity")
            .field("certificate_pem", &self.certificate_pem)
            .finish_non_exhaustive()
    }
}

/// What a certificate is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Client,
    Server,
}

/// Why a certificate can't be created.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// A certificate can't be created or parsed.
    #[error("cannot create a certificate")]
    Certificate(#[from] rcgen::Error),
    /// The TLS library does not accept the certificate.
    #[error("cannot set up TLS")]
    Tls(#[from] rustls::Error),
    /// The verifier of client certificates can't be created.
    #[error("cannot verify client certificates")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
    /// A certificate request that can't be signed.
    #[error("{0}")]
    Request(String),
}

/// A certificate authority with its key.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// Tolerated difference between the clocks of client and server.
const EARLY: Duration = Duration::from_secs(300);

const TEN_YEARS: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

impl Authority {
    /// A new authority, valid for ten years from `now`.
    ///
    /// # Errors
    /// The key or the certificate can't be created.
    pub fn new(now: Timestamp) -> Result<Self, AuthorityError> {
        let mut params = CertificateParams::default();
        valid(&mut params, now, TEN_YEARS);
        name(&mut params, "kubernetes", None);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        Ok(Self { issuer })
    }

    /// The authority's certificate, as PEM.
    #[must_use]
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// The authority's private key, as PEM, for programs that sign with it.
    #[must_use]
    pub fn key_pem(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// A certificate of a user, with the first group only.
    ///
    /// # Errors
    /// The certificate can't be created.
    pub fn client(
        &self,
        user: &User,
        now: Timestamp,
        lifetime: Duration,
    ) -> Result<Identity, AuthorityError> {
        let mut params = CertificateParams::default();
        valid(&mut params, now, lifetime);
        name(
            &mut params,
            &user.name,
            user.groups.first().map(String::as_str),
        );
        usages(&mut params, Purpose::Client);
        self.issue(&params)
    }

    /// A serving certificate for these names and addresses.
    ///
    /// # Errors
    /// A name is invalid, or the certificate cannot be created.
    pub fn server(
        &self,
        names: Vec<String>,
        now: Timestamp,
        lifetime: Duration,
    ) -> Result<Identity, AuthorityError> {
        let mut params = CertificateParams::new(names)?;
        valid(&mut params, now, lifetime);
        name(&mut params, "kube-apiserver", None);
        usages(&mut params, Purpose::Server);
        self.issue(&params)
    }

    fn issue(&self, params: &CertificateParams) -> Result<Identity, AuthorityError> {
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Identity {
            certificate_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
        })
    }

    /// Signs a request, with its subject, names and key.
    pub(crate) fn sign(
        &self,
        request: &[u8],
        purpose: Purpose,
        now: Timestamp,
        lifetime: Duration,
    ) -> Result<Certificate, AuthorityError> {
        let mut request = read(request)?;
        valid(&mut request.params, now, lifetime);
        usages(&mut request.params, purpose);
        request.params.is_ca = IsCa::NoCa;
        Ok(request.signed_by(&self.issuer)?)
    }

    /// The server's TLS configuration. Client certificates are optional.
    pub(crate) fn tls(
        &self,
        names: Vec<String>,
        now: Timestamp,
    ) -> Result<Arc<ServerConfig>, AuthorityError> {
        let mut params = CertificateParams::new(names)?;
        valid(&mut params, now, TEN_YEARS);
        name(&mut params, "kube-apiserver", None);
        usages(&mut params, Purpose::Server);
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone())?;
        let provider = provider();
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .allow_unauthenticated()
                .build()?;
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![certificate.der().clone()], key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

/// The cryptography provider.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// Subject of a certificate request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) common_name: String,
    pub(crate) organization: String,
    pub(crate) has_names: bool,
}

/// Parses a request in PEM, as decoded from the base64 of `spec.request`.
fn read(request: &[u8]) -> Result<CertificateSigningRequestParams, AuthorityError> {
    let wrong = |what: &str| AuthorityError::Request(what.to_owned());
    let text = std::str::from_utf8(request)
        .map_err(|_| wrong("PEM block type must be CERTIFICATE REQUEST"))?;
    CertificateSigningRequestParams::from_pem(text)
        .map_err(|error| AuthorityError::Request(format!("no certificate request: {error}")))
}

/// Parses the subject of a request.
pub(crate) fn subject(request: &[u8]) -> Result<Subject, AuthorityError> {
    let params = read(request)?.params;
    let part = |kind: DnType| match params.distinguished_name.get(&kind) {
        Some(DnValue::Utf8String(text)) => text.clone(),
        Some(DnValue::PrintableString(text)) => text.as_str().to_owned(),
        _ => String::new(),
    };
    Ok(Subject {
        common_name: part(DnType::CommonName),
        organization: part(DnType::OrganizationName),
        has_names: !params.subject_alt_names.is_empty(),
    })
}

/// The user of a client certificate: the common name, with its organizations as groups.
pub(crate) fn user_of(certificate: &CertificateDer<'_>) -> Option<User> {
    let (_, certificate) = x509_parser::certificate::X509Certificate::from_der(certificate).ok()?;
    let subject = certificate.subject();
    let text = |attribute: &x509_parser::x509::AttributeTypeAndValue<'_>| {
        attribute.as_str().ok().map(str::to_owned)
    };
    let mut user = User {
        name: subject.iter_common_name().next().and_then(text)?,
        ..User::default()
    };
    let groups = subject.iter_by_oid(&oid_registry::OID_X509_ORGANIZATION_NAME);
    user.groups.extend(groups.filter_map(text));
    Some(user.authenticated())
}

/// The DER of the first certificate of a PEM text.
pub(crate) fn der(pem: &str) -> Option<CertificateDer<'static>> {
    let body = pem.split("-----BEGIN CERTIFICATE-----").nth(1)?;
    let body = body.split("-----END").next()?;
    Some(CertificateDer::from(base64::decode(body.trim())?))
}

fn valid(params: &mut CertificateParams, now: Timestamp, lifetime: Duration) {
    let since_epoch = u64::try_from(now.as_second()).unwrap_or(0);
    let now = date_time_ymd(1970, 1, 1) + Duration::from_secs(since_epoch);
    params.not_before = now - EARLY.min(lifetime);
    params.not_after = now + lifetime;
}

fn name(params: &mut CertificateParams, common_name: &str, organization: Option<&str>) {
    let mut name = rcgen::DistinguishedName::new();
    if let Some(organization) = organization {
        name.push(DnType::OrganizationName, organization);
    }
    name.push(DnType::CommonName, common_name);
    params.distinguished_name = name;
}

fn usages(params: &mut CertificateParams, purpose: Purpose) {
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![match purpose {
        Purpose::Client => ExtendedKeyUsagePurpose::ClientAuth,
        Purpose::Server => ExtendedKeyUsagePurpose::ServerAuth,
    }];
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-06-01T00:00:00Z".parse().unwrap()
    }

    #[test]
    fn a_client_certificate_says_who_its_user_is() {
        let authority = Authority::new(now()).unwrap();
        let hour = Duration::from_secs(3600);
        let identity = authority.client(&User::node("n"), now(), hour).unwrap();
        let user = user_of(&der(&identity.certificate_pem).unwrap()).unwrap();
        assert_eq!(user.node_name(), Some("n"));
        assert!(user.is_in("system:authenticated"));
    }

    #[test]
    fn a_request_is_signed_for_its_own_subject_and_key() {
        let authority = Authority::new(now()).unwrap();
        let mut params = CertificateParams::default();
        name(&mut params, "system:node:n", Some("system:nodes"));
        let key = KeyPair::generate().unwrap();
        let request = params.serialize_request(&key).unwrap().pem().unwrap();
        let subject = subject(request.as_bytes()).unwrap();
        assert_eq!(subject.common_name, "system:node:n");
        assert_eq!(subject.organization, "system:nodes");
        assert!(!subject.has_names);
        let hour = Duration::from_secs(3600);
        let signed = authority
            .sign(request.as_bytes(), Purpose::Client, now(), hour)
            .unwrap();
        assert_eq!(user_of(signed.der()).unwrap().node_name(), Some("n"));
        assert!(authority.sign(b"x", Purpose::Client, now(), hour).is_err());
    }
}
