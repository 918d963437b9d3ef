//! What all TLS clients share: the cryptography provider, and the verifier that accepts any server.
//!
//! It opens no connection and reads no file. Each client adds its own certificate authorities,
//! client certificate and ALPN protocols:
//!
//! ```
//! use std::sync::Arc;
//!
//! use rubelet_tls::{AcceptAnyServer, client_config};
//!
//! let mut insecure = client_config()
//!     .dangerous()
//!     .with_custom_certificate_verifier(Arc::new(AcceptAnyServer))
//!     .with_no_client_auth();
//! insecure.alpn_protocols = vec![b"http/1.1".to_vec()];
//! ```

use std::sync::Arc;

use rustls::{
    ClientConfig, ConfigBuilder, DigitallySignedStruct, Error, SignatureScheme, WantsVerifier,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, ServerName, UnixTime},
};

/// The first step of a client's configuration: TLS 1.2 and 1.3 with aws-lc.
#[must_use]
pub fn client_config() -> ConfigBuilder<ClientConfig, WantsVerifier> {
    ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("aws-lc-rs has cipher suites for TLS 1.2 and 1.3")
}

/// Accepts every server and every handshake signature.
///
/// For the cases in which Kubernetes and containerd skip verification: probes and HTTP hooks,
/// `insecure-skip-tls-verify` of a kubeconfig, registries with `skip_verify`. The signature is not
/// checked either: it proves nothing about a certificate that anyone may have made, and the parser
/// for it rejects certificates of X.509 version 1, which some servers still have.
#[derive(Debug)]
pub struct AcceptAnyServer;

impl ServerCertVerifier for AcceptAnyServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    /// All schemes: the server must find one that matches its key, however old that is.
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![
            SignatureScheme::ECDSA_NISTP256_SHA256,
            SignatureScheme::ECDSA_NISTP384_SHA384,
            SignatureScheme::ECDSA_NISTP521_SHA512,
            SignatureScheme::ED25519,
            SignatureScheme::ED448,
            SignatureScheme::RSA_PSS_SHA256,
            SignatureScheme::RSA_PSS_SHA384,
            SignatureScheme::RSA_PSS_SHA512,
            SignatureScheme::RSA_PKCS1_SHA256,
            SignatureScheme::RSA_PKCS1_SHA384,
            SignatureScheme::RSA_PKCS1_SHA512,
            SignatureScheme::ECDSA_SHA1_Legacy,
            SignatureScheme::RSA_PKCS1_SHA1,
        ]
    }
}

#[cfg(test)]
mod tests;
