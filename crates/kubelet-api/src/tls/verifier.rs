//! Client certificates in the handshake: requested, never required, and not verified yet.
//!
//! As in the kubelet, a certificate is verified for each request: a change of the authorities and
//! the expiry of a certificate apply to open connections too, an invalid certificate beside a valid
//! token does no harm, and a client with an invalid one gets 401 instead of a TLS alert without
//! details. The handshake proves one thing: that the client holds the certificate's key.

use std::sync::Arc;

use rustls::{
    DigitallySignedStruct, DistinguishedName, Error, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, UnixTime},
    server::danger::{ClientCertVerified, ClientCertVerifier},
};

/// Requests a certificate of these authorities and accepts any.
#[derive(Debug)]
pub(super) struct AskForAny {
    names: Vec<DistinguishedName>,
    provider: Arc<CryptoProvider>,
}

impl AskForAny {
    pub(super) fn new(names: Vec<DistinguishedName>, provider: &Arc<CryptoProvider>) -> Self {
        Self {
            names,
            provider: Arc::clone(provider),
        }
    }
}

impl ClientCertVerifier for AskForAny {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.names
    }

    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
