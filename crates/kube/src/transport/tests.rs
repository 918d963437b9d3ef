//! TLS, proxies and certificates on loopback.

use std::{fs, net::SocketAddr, sync::Arc};

use http::{Request, Response};
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::TokioExecutor;
use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rubelet_base::ErrorChain;
use rustls::{
    RootCertStore, ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivatePkcs8KeyDer},
    server::WebPkiClientVerifier,
};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::{
    ApiError, Client, ClientIdentity, ClientOptions, Credential, IdentitySource, Proxy, Roots,
};

/// A certificate authority.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
            .distinguished_name
            .push(DnType::CommonName, "authority");
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// A certificate for this name, and its key, in PEM.
    fn pair(&self, name: &str) -> (String, String) {
        let (der, key) = self.der(name);
        (pem("CERTIFICATE", &der), pem("PRIVATE KEY", &key))
    }

    fn der(&self, name: &str) -> (Vec<u8>, Vec<u8>) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.signed_by(&key, &self.0).unwrap();
        (certificate.der().to_vec(), key.serialize_der())
    }

    fn pem(&self) -> String {
        pem("CERTIFICATE", self.0.der())
    }
}

fn pem(label: &str, der: &[u8]) -> String {
    use base64::Engine as _;
    let body = base64::engine::general_purpose::STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
}

/// A server that tells who calls: the protocol, and the number of the client certificate among
/// those that it has seen.
struct Server {
    address: SocketAddr,
    connections: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Server {
    async fn start(authority: &Authority, name: &str, protocols: &[&[u8]]) -> Self {
        let (certificate, key) = authority.der(name);
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from(authority.0.der().to_vec()))
            .unwrap();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .allow_unauthenticated()
                .build()
                .unwrap();
        let mut tls = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier)
            .with_single_cert(
                vec![certificate.into()],
                PrivatePkcs8KeyDer::from(key).into(),
            )
            .unwrap();
        tls.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(acceptor.clone(), stream, Arc::clone(&seen)));
            }
        });
        Self {
            address,
            connections,
        }
    }

    fn config(&self, roots: Roots) -> ClientConfig {
        let mut config = ClientConfig::anonymous(&format!("https://{}", self.address)).unwrap();
        config.roots = roots;
        config.proxy = Proxy::Direct;
        config
    }

    /// The client certificates that connections came with.
    fn connections(&self) -> Vec<Vec<u8>> {
        self.connections.lock().clone()
    }
}

async fn serve(acceptor: TlsAcceptor, stream: TcpStream, seen: Arc<Mutex<Vec<Vec<u8>>>>) {
    let Ok(stream) = acceptor.accept(stream).await else {
        return;
    };
    let connection = stream.get_ref().1;
    let certificates = connection.peer_certificates().unwrap_or_default();
    let certificate = certificates
        .first()
        .map(|der| der.to_vec())
        .unwrap_or_default();
    seen.lock().push(certificate);
    let http2 = connection.alpn_protocol() == Some(b"h2");
    let service = service_fn(|request: Request<hyper::body::Incoming>| async move {
        let version = format!("{:?}", request.version());
        Ok::<_, std::convert::Infallible>(Response::new(Full::new(Bytes::from(version))))
    });
    let stream = hyper_util::rt::TokioIo::new(stream);
    if http2 {
        let serving = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        serving.serve_connection(stream, service).await.ok();
    } else {
        let serving = hyper::server::conn::http1::Builder::new();
        serving.serve_connection(stream, service).await.ok();
    }
}

fn client(config: ClientConfig) -> Client {
    Client::new(config, ClientOptions::default()).unwrap()
}

fn roots(authority: &Authority) -> Roots {
    Roots::Pem(authority.pem().into_bytes().into())
}

async fn failure(config: ClientConfig) -> String {
    let error = client(config).get_text("/").await.unwrap_err();
    assert!(matches!(error, ApiError::Unreachable(_)), "{error:?}");
    ErrorChain(&error).to_string()
}

#[tokio::test]
async fn the_server_chooses_the_protocol() {
    let authority = Authority::new();
    for (protocols, version) in [
        (&[b"h2" as &[u8], b"http/1.1"] as &[&[u8]], "HTTP/2.0"),
        (&[b"http/1.1"], "HTTP/1.1"),
        (&[], "HTTP/1.1"),
    ] {
        let server = Server::start(&authority, "127.0.0.1", protocols).await;
        let client = client(server.config(roots(&authority)));
        for _ in 0..3 {
            assert_eq!(client.get_text("/healthz").await.unwrap(), version);
        }
        assert_eq!(server.connections().len(), 1);
    }
}

#[tokio::test]
async fn a_server_that_nobody_vouches_for_is_not_talked_to() {
    let authority = Authority::new();
    let server = Server::start(&authority, "127.0.0.1", &[b"h2"]).await;
    let text = failure(server.config(roots(&Authority::new()))).await;
    assert!(
        text.contains("TLS handshake") && text.contains("invalid peer certificate"),
        "{text}"
    );

    let elsewhere = Server::start(&authority, "api.example", &[b"h2"]).await;
    let text = failure(elsewhere.config(roots(&authority))).await;
    assert!(text.contains("not valid for name"), "{text}");
    let mut config = elsewhere.config(roots(&authority));
    config.tls_server_name = Some("api.example".into());
    client(config)
        .get_text("/")
        .await
        .expect("the name is what the configuration says");

    let mut config = server.config(Roots::System);
    config.insecure_skip_tls_verify = true;
    client(config)
        .get_text("/")
        .await
        .expect("any server will do");
}

#[tokio::test]
async fn nobody_there_is_reported_with_the_address() {
    let mut config = ClientConfig::anonymous("https://127.0.0.1:1").unwrap();
    config.roots = roots(&Authority::new());
    config.proxy = Proxy::Direct;
    let text = failure(config).await;
    assert!(text.contains("cannot connect to 127.0.0.1:1"), "{text}");
}

#[tokio::test]
async fn a_new_certificate_in_the_cell_is_shown_after_a_reload() {
    let authority = Authority::new();
    let server = Server::start(&authority, "127.0.0.1", &[b"h2"]).await;
    let cell = ClientIdentity::new();
    let mut config = server.config(roots(&authority));
    config.identity = IdentitySource::Shared(cell.clone());
    let client = client(config);
    client.get_text("/").await.unwrap();
    for name in ["one", "two"] {
        let (certificate, key) = authority.pair(name);
        cell.set_pem(certificate.as_bytes(), key.as_bytes())
            .unwrap();
        client.reload();
        client.get_text("/").await.unwrap();
    }
    let seen = server.connections();
    assert_eq!(seen.len(), 3);
    assert!(seen[0].is_empty() && !seen[1].is_empty() && !seen[2].is_empty());
    assert_ne!(
        seen[1], seen[2],
        "no session is resumed with the old certificate"
    );
}

#[tokio::test]
async fn certificate_files_are_read_again_when_they_change() {
    let authority = Authority::new();
    let server = Server::start(&authority, "127.0.0.1", &[b"h2"]).await;
    let directory = tempfile::tempdir().unwrap();
    let (certificate, key) = (directory.path().join("crt"), directory.path().join("key"));
    let ca = directory.path().join("ca");
    let write = |name: &str| {
        let pair = authority.pair(name);
        fs::write(&certificate, pair.0).unwrap();
        fs::write(&key, pair.1).unwrap();
    };
    let mut config = server.config(Roots::File(ca.clone()));
    config.identity = IdentitySource::Files {
        certificate: certificate.clone(),
        key: key.clone(),
    };
    let missing = |config: &ClientConfig| {
        let error = Client::new(config.clone(), ClientOptions::default()).unwrap_err();
        ErrorChain(&error).to_string()
    };
    assert!(
        missing(&config).contains("/crt: No such file"),
        "{}",
        missing(&config)
    );
    write("one");
    assert!(
        missing(&config).contains("/ca: No such file"),
        "{}",
        missing(&config)
    );
    fs::write(&ca, authority.pem()).unwrap();
    let client = client(config);
    client.get_text("/").await.unwrap();
    write("two");
    client.get_text("/").await.unwrap();
    assert_eq!(
        server.connections().len(),
        1,
        "not looked at for each request"
    );
    let credentials = client.credentials();
    assert!(credentials.refused(0).await, "a refusal makes it look");
    client.get_text("/").await.unwrap();
    let seen = server.connections();
    assert_eq!(seen.len(), 2);
    assert_ne!(seen[0], seen[1]);
    fs::write(&key, "half").unwrap();
    assert!(
        !credentials.refused(1).await,
        "what can't be used changes nothing"
    );
    client.get_text("/").await.unwrap();
}

/// A proxy that notes what it is asked and answers with this line.
async fn proxy(answer: &'static str) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut stream = BufReader::new(stream);
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                stream.read_line(&mut head).await.unwrap();
            }
            let target = head.split(' ').nth(1).unwrap().to_owned();
            noted.lock().push(head);
            stream
                .write_all(format!("HTTP/1.1 {answer}\r\n\r\n").as_bytes())
                .await
                .unwrap();
            if let Ok(mut server) = TcpStream::connect(target).await {
                tokio::spawn(async move {
                    tokio::io::copy_bidirectional(&mut stream, &mut server)
                        .await
                        .ok();
                });
            }
        }
    });
    (address, asked)
}

#[tokio::test]
async fn a_proxy_is_asked_to_connect() {
    let authority = Authority::new();
    let server = Server::start(&authority, "127.0.0.1", &[b"h2"]).await;
    let (address, asked) = proxy("200 Connection established").await;
    let mut config = server.config(roots(&authority));
    config.proxy = Proxy::Http(format!("http://user:secret@{address}").into());
    config.credential = Credential::Token(crate::Secret::new("token"));
    assert_eq!(client(config).get_text("/").await.unwrap(), "HTTP/2.0");
    let asked = asked.lock().join("");
    assert!(
        asked.starts_with(&format!("CONNECT {} HTTP/1.1\r\n", server.address)),
        "{asked}"
    );
    assert!(
        asked.contains("Proxy-Authorization: Basic ") && !asked.contains("token"),
        "{asked}"
    );

    let (address, _) = proxy("407 Who are you").await;
    let mut config = server.config(roots(&authority));
    config.proxy = Proxy::Http(format!("http://user:secret@{address}").into());
    let text = failure(config).await;
    assert!(
        text.contains("407 Who are you") && !text.contains("secret"),
        "{text}"
    );
}

#[test]
fn a_proxy_towards_a_plain_server_is_refused() {
    let mut config = ClientConfig::anonymous("http://127.0.0.1:1").unwrap();
    config.proxy = Proxy::Http("http://proxy".into());
    let error = Client::new(config, ClientOptions::default()).unwrap_err();
    assert!(error.to_string().contains("https servers only"), "{error}");
}

#[tokio::test]
async fn a_kubeconfig_is_all_that_a_client_needs() {
    let authority = Authority::new();
    let server = Server::start(&authority, "127.0.0.1", &[b"h2"]).await;
    let directory = tempfile::tempdir().unwrap();
    let (certificate, key) = authority.pair("node");
    for (name, text) in [("ca", authority.pem()), ("crt", certificate), ("key", key)] {
        fs::write(directory.path().join(name), text).unwrap();
    }
    let text = serde_json::json!({
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"certificate-authority": "ca",
            "server": format!("https://{}/base", server.address)}}],
        "users": [{"name": "u", "user": {"client-certificate": "crt", "client-key": "key"}}],
    });
    let path = directory.path().join("kubeconfig");
    fs::write(&path, text.to_string()).unwrap();
    let config = crate::kubeconfig::Kubeconfig::load(&path)
        .unwrap()
        .client_config(None)
        .unwrap();
    let client = client(config);
    assert!(client.get::<Value>("/x").await.is_err(), "no JSON");
    assert_eq!(client.get_text("/x").await.unwrap(), "HTTP/2.0");
    assert!(!server.connections()[0].is_empty());
}

#[tokio::test]
async fn a_certificate_that_the_server_refuses_is_reported_as_that() {
    for protocols in [&[b"h2" as &[u8]] as &[&[u8]], &[b"http/1.1"]] {
        let authority = Authority::new();
        let server = Server::start(&authority, "127.0.0.1", protocols).await;
        let (certificate, key) = Authority::new().pair("stranger");
        let cell = ClientIdentity::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
        let config = server.config(roots(&authority)).with_identity(cell);
        let text = failure(config).await;
        assert!(
            text.contains("the API server rejects the client certificate"),
            "{text}"
        );
    }
}
