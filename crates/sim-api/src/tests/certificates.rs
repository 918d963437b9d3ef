//! Certificate requests, and TLS with the issued certificates.

use std::{sync::Arc, time::Duration};

use rcgen::{CertificateParams, DnType, KeyPair};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer, ServerName},
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{pair, server};
use crate::{Approval, SimApi, SimApiConfig, User, authority, base64};

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

fn request(key: &KeyPair, node: &str, group: &str) -> Value {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::OrganizationName, group);
    params
        .distinguished_name
        .push(DnType::CommonName, format!("system:node:{node}"));
    let pem = params.serialize_request(key).unwrap().pem().unwrap();
    json!({
        "metadata": { "name": "csr-1" },
        "spec": {
            "request": base64::encode(pem.as_bytes()),
            "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
            "usages": ["client auth", "digital signature"],
        },
    })
}

#[tokio::test(start_paused = true)]
async fn a_request_is_signed_once_it_is_approved() {
    let (api, mut client) = pair().await;
    let key = KeyPair::generate().unwrap();
    let (code, made) = client
        .post(REQUESTS, &request(&key, "n", "system:nodes"))
        .await;
    assert_eq!(code, 201);
    assert_eq!(made["spec"]["username"], "admin");
    assert!(made["status"].get("certificate").is_none());
    let approved = json!({ "status": { "conditions": [
        { "type": "Approved", "status": "True", "reason": "Test" },
    ] } });
    let mut whole = made.clone();
    whole["status"] = approved["status"].clone();
    let (code, _) = client
        .put(&format!("{REQUESTS}/csr-1/approval"), &whole)
        .await;
    assert_eq!(code, 200);
    let signed = api.get("certificatesigningrequests", "", "csr-1").unwrap();
    let pem = base64::decode(signed["status"]["certificate"].as_str().unwrap()).unwrap();
    let der = authority::der(std::str::from_utf8(&pem).unwrap()).unwrap();
    assert_eq!(authority::user_of(&der).unwrap().node_name(), Some("n"));
}

#[tokio::test(start_paused = true)]
async fn requests_of_nodes_can_be_approved_automatically() {
    let api = server().await;
    api.configure(|config| config.approval = Approval::Clients);
    let key = KeyPair::generate().unwrap();
    api.create(
        "certificatesigningrequests",
        &request(&key, "n", "system:nodes"),
    )
    .unwrap();
    let signed = api.get("certificatesigningrequests", "", "csr-1").unwrap();
    assert!(signed["status"]["certificate"].is_string());
    let mut bad = request(&key, "n", "system:masters");
    bad["metadata"]["name"] = "csr-2".into();
    api.create("certificatesigningrequests", &bad).unwrap();
    let failed = api.get("certificatesigningrequests", "", "csr-2").unwrap();
    assert_eq!(failed["status"]["conditions"][1]["type"], "Failed");
    bad["metadata"]["name"] = "csr-3".into();
    bad["spec"]["request"] = "eA==".into();
    let refused = api.create("certificatesigningrequests", &bad).unwrap_err();
    assert_eq!(refused.code, 422);
}

#[tokio::test]
async fn a_client_certificate_authenticates() {
    let config = SimApiConfig {
        tls: true,
        authenticate: true,
        ..SimApiConfig::default()
    };
    let api = SimApi::start(config).await.unwrap();
    let hour = Duration::from_secs(3600);
    let identity = api.client_certificate(&User::node("n"), hour).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(authority::der(&api.ca_pem()).unwrap()).unwrap();
    let key: String = identity
        .key_pem
        .lines()
        .filter(|line| !line.contains("-----"))
        .collect();
    let key = PrivatePkcs8KeyDer::from(base64::decode(&key).unwrap());
    let tls = ClientConfig::builder_with_provider(authority::provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(
            vec![authority::der(&identity.certificate_pem).unwrap()],
            PrivateKeyDer::from(key),
        )
        .unwrap();
    let stream = tokio::net::TcpStream::connect(api.address()).await.unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(tls));
    let mut stream = connector.connect(name, stream).await.unwrap();
    let request = "GET /api/v1/nodes HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(api.requests()[0].user, "system:node:n");
    let kubeconfig = api.kubeconfig(&crate::Credentials::Certificate(identity));
    let kubeconfig: Value = serde_json::from_str(&kubeconfig).unwrap();
    assert_eq!(kubeconfig["clusters"][0]["cluster"]["server"], api.url());
}
