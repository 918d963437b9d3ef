//! Versions, protocols and handshakes that fail.

use rustls::{ProtocolVersion, version::TLS12};
use tokio::{io::AsyncWriteExt as _, net::TcpStream};

use super::{
    authority::Authority,
    server::{Server, Setup, rest},
};
use crate::{ClientCa, TlsSettings, bind_port, crypto::provider};

fn tls12_only(server: &Server) -> rustls::ClientConfig {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(server.authority.der()).unwrap();
    rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS12])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

#[tokio::test]
async fn the_lowest_version_is_that_of_the_setting() {
    let server = Server::start().await;
    let stream = server.connect_as(tls12_only(&server)).await.unwrap();
    let version = stream.get_ref().1.protocol_version();
    assert_eq!(version, Some(ProtocolVersion::TLSv1_2));
    let stream = server.connect(None).await;
    let version = stream.get_ref().1.protocol_version();
    assert_eq!(version, Some(ProtocolVersion::TLSv1_3));

    let strict = Server::with(Setup {
        tls: TlsSettings::new("VersionTLS13", &[], &[]).unwrap(),
        ..Setup::default()
    })
    .await;
    assert!(strict.connect_as(tls12_only(&strict)).await.is_err());
    assert!(strict.try_connect(None, &[]).await.is_ok());
}

#[tokio::test]
async fn suites_are_those_of_the_setting() {
    let suite = "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256".to_owned();
    let server = Server::with(Setup {
        tls: TlsSettings::new("", &[suite], &[]).unwrap(),
        ..Setup::default()
    })
    .await;
    let stream = server.connect_as(tls12_only(&server)).await.unwrap();
    let suite = stream.get_ref().1.negotiated_cipher_suite().unwrap();
    assert_eq!(
        suite.suite(),
        rustls::CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256
    );
}

#[tokio::test]
async fn plain_http_is_no_handshake_and_is_counted() {
    let server = Server::start().await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream
        .write_all(b"GET /pods HTTP/1.1\r\nHost: node\r\n\r\n")
        .await
        .unwrap();
    let mut bytes = Vec::new();
    let _ = tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut bytes).await;
    assert!(!String::from_utf8_lossy(&bytes).contains("PodList"));
    assert_eq!(server.notes.take(), ["handshake failed"]);
}

#[tokio::test]
async fn a_certificate_without_its_key_is_of_no_use() {
    let server = Server::start().await;
    // Ann's certificate with a key of somebody else: rustls itself would not sign with it.
    let mut stolen = server.authority.client("ann", &[]);
    stolen.key = server.authority.client("bob", &[]).key;
    let key = provider()
        .key_provider
        .load_private_key(stolen.key.clone_key())
        .unwrap();
    let certified = rustls::sign::CertifiedKey::new(stolen.chain, key);
    let mut config = server.client_config(None);
    config.client_auth_cert_resolver =
        std::sync::Arc::new(rustls::sign::SingleCertAndKey::from(certified));
    if let Ok(mut stream) = server.connect_as(config).await {
        let request = b"GET /pods HTTP/1.1\r\nHost: node\r\n\r\n";
        let _ = stream.write_all(request).await;
        assert_eq!(rest(&mut stream).await, "");
    }
    assert_eq!(server.notes.take(), ["handshake failed"]);
}

#[tokio::test]
async fn a_bundle_must_be_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ca.crt");
    let problem = async || {
        let error = ClientCa::load(&path).await.unwrap_err();
        error
            .to_string()
            .replace(&path.display().to_string(), "FILE")
    };
    assert_eq!(problem().await, "cannot read the client CA file FILE");
    std::fs::write(&path, "no pem").unwrap();
    assert_eq!(
        problem().await,
        "the client CA file FILE holds no certificate; put the authority's certificate there in PEM"
    );
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let good = Authority::new("one").pem();
    std::fs::write(&path, format!("{good}{broken}")).unwrap();
    assert_eq!(
        problem().await,
        "cannot use certificate 2 of the client CA file FILE"
    );
    std::fs::write(&path, format!("{good}{}", Authority::new("two").pem())).unwrap();
    assert!(ClientCa::load(&path).await.is_ok());
}

#[tokio::test]
async fn a_port_that_is_taken_is_named() {
    let listener = bind_port("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = listener.local_addr().unwrap();
    let error = bind_port(address).await.unwrap_err();
    assert_eq!(error.to_string(), format!("cannot listen on {address}"));
}
