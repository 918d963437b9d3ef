//! Certificates of a node against the model API server, over TLS.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rubelet_kube::certificates::{
    CertificateHooks, CertificateNotice, ClientCertificate, ClientSetup, ClusterServing,
    ServingNames,
};
use rubelet_kube::{Client, ClientOptions};
use serde_json::{Value, json};
use sim_api::{Approval, Credentials, SimApi, SimApiConfig, User};
use tempfile::TempDir;
use tokio::sync::watch;

const TOKEN: &str = "abcdef.0123456789abcdef";

async fn cluster(approval: Approval, lifetime: Duration) -> SimApi {
    let server = SimApi::start(SimApiConfig {
        tls: true,
        authenticate: true,
        approval,
        certificate_lifetime: lifetime,
        ..SimApiConfig::default()
    })
    .await
    .expect("the server starts");
    let user = User::new("system:bootstrap:abcdef", &["system:bootstrappers"]);
    server.add_token(TOKEN, user);
    server
}

struct Node {
    directory: TempDir,
    notice: CertificateNotice,
}

impl Node {
    fn new(server: &SimApi) -> Self {
        let directory = tempfile::tempdir().expect("a directory for the test");
        let text = server.kubeconfig(&Credentials::Token(TOKEN.to_owned()));
        fs::write(directory.path().join("bootstrap.conf"), text).expect("the directory is ours");
        Self {
            directory,
            notice: CertificateNotice::new("client certificate"),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn certificate(&self) -> ClientCertificate {
        ClientCertificate::new(ClientSetup {
            kubeconfig: self.path("kubelet.conf"),
            bootstrap_kubeconfig: Some(self.path("bootstrap.conf")),
            cert_dir: self.path("pki"),
            node_name: "n1".into(),
            rotate: true,
            options: ClientOptions::default(),
            notice: self.notice.clone(),
            hooks: CertificateHooks::default(),
        })
    }
}

/// Approves the only request there is, as `kubectl certificate approve` does.
fn approve(server: &SimApi, name: &str) {
    let mut request = server
        .get("certificatesigningrequests", "", name)
        .expect("the request is there");
    request["status"]["conditions"] = json!([{"type": "Approved", "status": "True"}]);
    server
        .update("certificatesigningrequests/approval", &request)
        .expect("an administrator may approve");
}

#[tokio::test]
async fn a_node_bootstraps_and_is_known_by_its_name() {
    let server = cluster(Approval::Manual, Duration::from_secs(3600)).await;
    let node = Node::new(&server);
    let mut certificate = node.certificate();
    let approval = async {
        let mut notice = node.notice.subscribe();
        let line = notice
            .wait_for(|line| line.as_ref().is_some_and(|line| line.contains("approve")))
            .await
            .expect("the notice lives");
        let name = line.as_ref().and_then(|line| line.rsplit(' ').next());
        approve(&server, name.expect("the line ends with the name"));
    };
    let (config, ()) = tokio::join!(certificate.config(), approval);
    let client =
        Client::new(config.expect("approved"), ClientOptions::default()).expect("a client");
    let object = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}});
    let _: Value = client
        .create("/api/v1/nodes", &object)
        .await
        .expect("a node may make its own object");
    let requests = server.requests();
    let users: BTreeSet<&str> = requests.iter().map(|made| made.user.as_str()).collect();
    let expected = BTreeSet::from(["system:bootstrap:abcdef", "system:node:n1"]);
    assert_eq!(users, expected);
    let other = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n2"}});
    let refused = client.create::<Value>("/api/v1/nodes", &other).await;
    assert!(refused.is_err_and(|error| error.is_forbidden()));
    assert_eq!(server.violations(), []);
}

#[tokio::test]
async fn no_request_fails_while_certificates_come_and_go() {
    // Such a certificate is renewed two or three seconds after it was issued.
    let server = cluster(Approval::Clients, Duration::from_secs(4)).await;
    let node = Node::new(&server);
    let mut certificate = node.certificate();
    let config = certificate.config().await.expect("approved at once");
    let client = Client::new(config, ClientOptions::default()).expect("a client");
    let object = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}});
    let _: Value = client.create("/api/v1/nodes", &object).await.expect("made");
    let renewal = tokio::spawn(certificate.renew(client.clone()));
    while server.list("certificatesigningrequests").len() < 3 {
        let _: Value = client
            .get("/api/v1/nodes/n1")
            .await
            .expect("a renewal is no reason to fail");
    }
    renewal.abort();
    let by_token = server.count(|made| made.user.starts_with("system:bootstrap"));
    let all = server.count(|made| made.resource.starts_with("certificatesigningrequests"));
    assert!(
        by_token < all,
        "renewals are asked for with the certificate"
    );
    assert_eq!(server.violations(), []);
}

#[tokio::test]
async fn the_ports_certificate_is_issued_for_the_nodes_addresses() {
    let server = cluster(Approval::All, Duration::from_secs(3600)).await;
    let node = Node::new(&server);
    let config = node.certificate().config().await.expect("approved at once");
    let client = Client::new(config, ClientOptions::default()).expect("a client");
    let first = ServingNames::of_node([("Hostname", "n1"), ("InternalIP", "10.0.0.1")]);
    let (names, receiver) = watch::channel(first);
    let notice = CertificateNotice::new("serving certificate");
    let serving = ClusterServing {
        client,
        cert_dir: node.path("pki"),
        files: None,
        node_name: "n1".into(),
        names: receiver,
        dns_only: false,
        clock: Arc::clone(&ClientOptions::default().clock),
        notice,
        hooks: CertificateHooks::default(),
    };
    let (shown, task) = serving.start().expect("the directory can be written");
    let task = tokio::spawn(task);
    for address in ["10.0.0.1", "10.0.0.2"] {
        names.send_replace(ServingNames::of_node([
            ("Hostname", "n1"),
            ("InternalIP", address),
        ]));
        let has_it = || {
            shown.certificate().is_some_and(|certificate| {
                let mut addresses = certificate.leaf().addresses.iter();
                addresses.any(|found| found.to_string() == address)
            })
        };
        while !has_it() {
            tokio::task::yield_now().await;
        }
    }
    task.abort();
    assert_eq!(server.violations(), []);
}

#[tokio::test]
async fn a_server_whose_certificate_is_not_valid_yet_is_reported_with_the_clocks_in_mind() {
    for (minutes, named) in [(20, true), (-10, false), (3, false)] {
        let config = SimApiConfig {
            tls: true,
            start: Some(rubelet_kube::clock::system()() + jiff::SignedDuration::from_mins(minutes)),
            ..SimApiConfig::default()
        };
        let server = SimApi::start(config).await.expect("the server starts");
        server.add_token(TOKEN, User::admin());
        let node = Node::new(&server);
        let file = rubelet_kube::kubeconfig::Kubeconfig::load(&node.path("bootstrap.conf"))
            .expect("it is ours");
        let config = file.client_config(None).expect("it is complete");
        let client = Client::new(config, ClientOptions::default()).expect("a client");
        let answer = client.get::<Value>("/api/v1/nodes").await;
        let told = answer.map_err(|error| rubelet_base::ErrorChain(&error).to_string());
        match named {
            false => assert!(told.is_ok(), "{minutes} min: {told:?}"),
            true => {
                let told = told.expect_err("the certificate is of the future");
                assert!(told.contains("compare the clocks"), "{told}");
                assert!(told.contains("not valid yet"), "{told}");
            }
        }
    }
}
