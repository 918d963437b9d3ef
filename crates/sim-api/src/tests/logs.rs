//! Logs, which are proxied from the node.

use std::{sync::Arc, time::Duration};

use http::Method;
use http_body_util::BodyExt as _;
use rustls::{
    RootCertStore, ServerConfig,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
    server::WebPkiClientVerifier,
};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;

use super::{PODS, TestClient, pod_on, server};
use crate::{SimApi, authority, base64};

/// TLS configuration of a node.
pub(super) fn node_tls(api: &SimApi) -> TlsAcceptor {
    let identity = api
        .server_certificate(&["127.0.0.1"], Duration::from_secs(3600))
        .unwrap();
    let key: String = identity
        .key_pem
        .lines()
        .filter(|line| !line.contains("-----"))
        .collect();
    let mut roots = RootCertStore::empty();
    roots.add(authority::der(&api.ca_pem()).unwrap()).unwrap();
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), authority::provider());
    let config = ServerConfig::builder_with_provider(authority::provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(
            vec![authority::der(&identity.certificate_pem).unwrap()],
            PrivateKeyDer::from(PrivatePkcs8KeyDer::from(base64::decode(&key).unwrap())),
        )
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

/// A node that responds to one request with its request line and the name of the user.
async fn node(api: &SimApi) -> u16 {
    let acceptor = node_tls(api);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = acceptor.accept(stream).await.unwrap();
        let shown = stream.get_ref().1.peer_certificates().unwrap();
        let user = authority::user_of(&shown[0]).unwrap();
        let mut head = vec![0; 4096];
        let length = stream.read(&mut head).await.unwrap();
        let head = String::from_utf8_lossy(&head[..length]);
        let body = format!("{} by {}", head.lines().next().unwrap(), user.name);
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(answer.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
    });
    port
}

/// Adds a node whose server has this port, and which declares these features.
pub(super) fn add_node(api: &SimApi, port: u16, features: &[&str]) {
    let node = json!({
        "metadata": { "name": "n" },
        "status": {
            "addresses": [{ "type": "InternalIP", "address": "127.0.0.1" }],
            "daemonEndpoints": { "kubeletEndpoint": { "Port": port } },
            "declaredFeatures": features,
        },
    });
    api.create("nodes", &node).unwrap();
}

/// The request that a node receives for a path of the API server.
async fn asked(path: &str) -> String {
    let api = server().await;
    let port = node(&api).await;
    add_node(&api, port, &[]);
    api.create("pods", &pod_on("web", "n")).unwrap();
    let mut client = TestClient::new(&api).await;
    let answer = client
        .try_send(Method::GET, path, "", String::new())
        .await
        .unwrap();
    assert_eq!(answer.status(), 200);
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8_lossy(&body).into_owned()
}

#[tokio::test]
async fn a_log_is_proxied_from_the_node_of_the_pod() {
    let path = format!("{PODS}/web/log?tailLines=3&sinceTime=2026-01-01T00:00:00Z&pretty=true");
    assert_eq!(
        asked(&path).await,
        "GET /containerLogs/default/web/main?sinceTime=2026-01-01T00%3A00%3A00Z&tailLines=3 \
         HTTP/1.1 by kube-apiserver-kubelet-client"
    );
}

#[tokio::test]
async fn proxied_requests_reach_the_node_with_their_query() {
    assert_eq!(
        asked("/api/v1/nodes/n/proxy/pods?mine=a%2Bb").await,
        "GET /pods?mine=a%2Bb HTTP/1.1 by kube-apiserver-kubelet-client"
    );
}

#[tokio::test]
async fn the_container_must_be_unambiguous() {
    let api = server().await;
    let mut pod = pod_on("web", "n");
    pod["spec"]["containers"] = json!([
        { "name": "a", "image": "web:1" },
        { "name": "b", "image": "web:1" },
    ]);
    api.create("pods", &pod).unwrap();
    let mut more = pod.clone();
    more["metadata"]["name"] = "more".into();
    more["spec"]["initContainers"] = json!([{ "name": "first", "image": "web:1" }]);
    api.create("pods", &more).unwrap();
    let mut client = TestClient::new(&api).await;
    let (code, error) = client.get(&format!("{PODS}/more/log")).await;
    let all = "a container name must be specified for pod more, choose one of: [first a b]";
    assert_eq!((code, error["message"].as_str()), (400, Some(all)));
    for (query, code, message) in [
        (
            "",
            400,
            "a container name must be specified for pod web, choose one of: [a b]",
        ),
        ("?container=c", 400, "container c is not valid for pod web"),
        ("?container=a", 404, r#"nodes "n" not found"#),
    ] {
        let (found, error) = client.get(&format!("{PODS}/web/log{query}")).await;
        assert_eq!((found, error["message"].as_str()), (code, Some(message)));
    }
}
