//! TLS towards registries: whom to believe.

use std::{path::Path, sync::Arc};

use rustls::{
    ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject as _},
};

use crate::{PullError, PullErrorKind};

/// Believes the authorities of the system and those of `extra`.
pub(super) fn checked(extra: Option<&Path>) -> Result<ClientConfig, PullError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = extra {
        let unusable = |error: Box<dyn std::error::Error + Send + Sync>| {
            let message = format!(
                "the authorities of registries cannot be read: {}",
                path.display()
            );
            PullError::because(PullErrorKind::Internal, message, error)
        };
        let certificates = CertificateDer::pem_file_iter(path);
        for certificate in certificates.map_err(|error| unusable(error.into()))? {
            let certificate = certificate.map_err(|error| unusable(error.into()))?;
            roots
                .add(certificate)
                .map_err(|error| unusable(error.into()))?;
        }
    }
    Ok(builder()
        .with_root_certificates(roots)
        .with_no_client_auth())
}

/// Believes everybody, for registries that are called insecure.
pub(super) fn any() -> ClientConfig {
    let builder = builder().dangerous();
    let builder = builder.with_custom_certificate_verifier(Arc::new(Everybody));
    builder.with_no_client_auth()
}

fn builder() -> rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier> {
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
