//! Handshakes with servers that a careful client refuses.

use std::io::{Read, Write};

use rcgen::{CertificateParams, KeyPair};
use rustls::{
    ClientConnection, RootCertStore, ServerConfig, ServerConnection, SupportedProtocolVersion,
    pki_types::PrivateKeyDer,
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
    version::{TLS12, TLS13},
};

use super::*;

const BOTH: [&SupportedProtocolVersion; 2] = [&TLS12, &TLS13];

#[test]
fn a_server_that_nobody_vouches_for_is_refused_unless_any_is_accepted() {
    let careful = client_config()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();

    let refused = greeting(careful, server(&BOTH, <[u8]>::to_vec)).unwrap_err();

    assert!(refused.contains("UnknownIssuer"), "{refused}");
    assert_eq!(
        greeting(careless(), server(&BOTH, <[u8]>::to_vec)).unwrap(),
        "hello"
    );
}

#[test]
fn a_client_speaks_tls_1_2_and_1_3() {
    for version in BOTH {
        let server = server(&[version], <[u8]>::to_vec);

        assert_eq!(greeting(careless(), server).unwrap(), "hello");
    }
}

#[test]
fn a_certificate_of_x509_version_1_is_accepted() {
    for version in BOTH {
        let server = server(&[version], version_1);

        assert_eq!(greeting(careless(), server).unwrap(), "hello");
    }
}

fn careless() -> ClientConfig {
    client_config()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AcceptAnyServer))
        .with_no_client_auth()
}

/// Always the same certificate, which rustls does not look into.
#[derive(Debug)]
struct Always(Arc<CertifiedKey>);

impl ResolvesServerCert for Always {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }
}

/// A server with a certificate that it has signed itself, as `change` leaves it.
fn server(
    versions: &[&'static SupportedProtocolVersion],
    change: fn(&[u8]) -> Vec<u8>,
) -> ServerConnection {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::default().self_signed(&key).unwrap();
    let certificate = CertificateDer::from(change(certificate.der()));
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let key = aws_lc_rs::sign::any_supported_type(&key).unwrap();
    let certified = CertifiedKey::new(vec![certificate], key);
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(versions)
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(Always(Arc::new(certified))));
    ServerConnection::new(Arc::new(config)).unwrap()
}

/// What `server` says to the client, or why there was no handshake.
fn greeting(client: ClientConfig, mut server: ServerConnection) -> Result<String, String> {
    let name = ServerName::try_from("node.example").unwrap();
    let mut client = ClientConnection::new(Arc::new(client), name).unwrap();
    server.writer().write_all(b"hello").unwrap();
    while client.wants_write() || server.wants_write() {
        let mut wire = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut wire).unwrap();
        }
        let mut unread = wire.as_slice();
        while !unread.is_empty() {
            server.read_tls(&mut unread).unwrap();
            server.process_new_packets().map_err(|e| e.to_string())?;
        }
        wire.clear();
        while server.wants_write() {
            server.write_tls(&mut wire).unwrap();
        }
        let mut unread = wire.as_slice();
        while !unread.is_empty() {
            client.read_tls(&mut unread).unwrap();
            client.process_new_packets().map_err(|e| e.to_string())?;
        }
    }
    let mut said = [0; 5];
    client.reader().read_exact(&mut said).unwrap();
    Ok(String::from_utf8_lossy(&said).into_owned())
}

/// The same certificate as version 1, which has no field for its version (RFC 5280, 4.1.2.1).
fn version_1(certificate: &[u8]) -> Vec<u8> {
    const VERSION_3: [u8; 5] = [0xa0, 3, 2, 1, 2];
    let (whole, _) = contents(certificate);
    let (signed, rest) = contents(whole);
    let signed = signed.strip_prefix(&VERSION_3).unwrap();
    sequence(&[&sequence(signed), rest].concat())
}

/// The contents of the DER sequence that `bytes` begin with, and what follows it.
fn contents(bytes: &[u8]) -> (&[u8], &[u8]) {
    assert_eq!(bytes[0], 0x30);
    let more = usize::from(bytes[1].saturating_sub(0x80));
    let length = match more {
        0 => usize::from(bytes[1]),
        _ => bytes[2..2 + more]
            .iter()
            .fold(0, |length, byte| length << 8 | usize::from(*byte)),
    };
    bytes[2 + more..].split_at(length)
}

fn sequence(contents: &[u8]) -> Vec<u8> {
    let length = u16::try_from(contents.len()).unwrap().to_be_bytes();
    [&[0x30, 0x82], &length[..], contents].concat()
}
