//! TLS towards registries: whom to believe, and what to show.

use std::{path::Path, sync::Arc};

use rustls::{
    ClientConfig, ConfigBuilder, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::{
        WantsClientCert,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject as _},
    sign::CertifiedKey,
};

use crate::{
    PullError, PullErrorKind,
    hosts::{HostSettings, NamedFile},
};

/// What is shown to hosts that want to know who asks.
pub(super) type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// The authorities of the system and those of `extra`.
pub(super) fn roots(extra: Option<&Path>) -> Result<RootCertStore, PullError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = extra {
        add(&mut roots, path).map_err(|cause| {
            let message = format!(
                "the authorities of registries cannot be read: {}",
                path.display()
            );
            PullError::because(PullErrorKind::Internal, message, cause)
        })?;
    }
    Ok(roots)
}

/// Adds the authorities of a file that a host's settings name.
pub(super) fn add_named(roots: &mut RootCertStore, file: &NamedFile) -> Result<(), PullError> {
    add(roots, &file.path).map_err(|cause| unusable(file, "certificate authorities", cause))
}

fn add(roots: &mut RootCertStore, path: &Path) -> Result<(), Cause> {
    let before = roots.len();
    for certificate in CertificateDer::pem_file_iter(path)? {
        roots.add(certificate?)?;
    }
    match roots.len() > before {
        true => Ok(()),
        false => Err("no certificate is in it".into()),
    }
}

/// Reads a certificate to show, and its key.
pub(super) fn identity((certificate, key): &(NamedFile, NamedFile)) -> Result<Identity, PullError> {
    let chain = CertificateDer::pem_file_iter(&certificate.path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(Cause::from)
        .and_then(|chain| match chain.is_empty() {
            true => Err("no certificate is in it".into()),
            false => Ok(chain),
        })
        .map_err(|cause| unusable(certificate, "client certificate", cause))?;
    let secret = PrivateKeyDer::from_pem_file(&key.path)
        .map_err(|cause| unusable(key, "client key", cause.into()))?;
    // A key that is none, or another one's, is told here and not by an unclear handshake.
    CertifiedKey::from_der(
        chain.clone(),
        secret.clone_key(),
        &aws_lc_rs::default_provider(),
    )
    .map_err(|cause| unusable(key, "client key", cause.into()))?;
    Ok((chain, secret))
}

/// Reads what a host's settings name, as a pull would.
pub(crate) fn try_certificates(host: &HostSettings) -> Result<(), PullError> {
    let mut roots = RootCertStore::empty();
    for file in &host.authorities {
        add_named(&mut roots, file)?;
    }
    host.client
        .as_ref()
        .map_or(Ok(()), |files| identity(files).map(drop))
}

fn unusable(file: &NamedFile, what: &str, cause: Cause) -> PullError {
    let path = file.path.display();
    let message = match file.named_at.as_str() {
        "" => format!("the {what} in {path} cannot be used"),
        place => format!("{place}: the {what} in {path} cannot be used"),
    };
    PullError::because(PullErrorKind::Internal, message, cause)
}

/// Believes these authorities.
pub(super) fn checked(roots: RootCertStore, identity: Option<&Identity>) -> ClientConfig {
    with_identity(builder().with_root_certificates(roots), identity)
}

/// Believes everybody, for registries that are called insecure.
pub(super) fn any(identity: Option<&Identity>) -> ClientConfig {
    let builder = builder().dangerous();
    let builder = builder.with_custom_certificate_verifier(Arc::new(Everybody));
    with_identity(builder, identity)
}

fn with_identity(
    builder: ConfigBuilder<ClientConfig, WantsClientCert>,
    identity: Option<&Identity>,
) -> ClientConfig {
    match identity {
        None => builder.with_no_client_auth(),
        Some((chain, key)) => builder
            .with_client_auth_cert(chain.clone(), key.clone_key())
            .expect("the key was checked when it was read"),
    }
}

fn builder() -> ConfigBuilder<ClientConfig, rustls::WantsVerifier> {
    ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider knows the default protocol versions")
}

#[derive(Debug)]
struct Everybody;

impl ServerCertVerifier for Everybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let provider = aws_lc_rs::default_provider();
        provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
