//! Certificates from the first request to the last renewal, against a model of the API server.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::Instant;

use super::rules::ServingNames;
use super::serving::self_signed;
use super::store::PairStore;
use super::test_signer::{Signer, clock, days, settle};
use super::{
    Certificate, CertificateHooks, CertificateNotice, ClientCertificate, ClientSetup,
    ClusterServing,
};
use crate::test_server::TestServer;
use crate::{Client, ClientConfig, ClientOptions, IdentitySource};

/// A directory with what a node has, and what it asks.
struct Node {
    directory: TempDir,
    notice: CertificateNotice,
    failed: Arc<AtomicUsize>,
    lived: Arc<Mutex<Vec<Duration>>>,
}

impl Node {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            notice: CertificateNotice::new("client certificate"),
            failed: Arc::default(),
            lived: Arc::default(),
        }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    fn hooks(&self) -> CertificateHooks {
        let (failed, lived) = (Arc::clone(&self.failed), Arc::clone(&self.lived));
        CertificateHooks {
            failed: Arc::new(move || {
                failed.fetch_add(1, Ordering::Relaxed);
            }),
            rotated: Arc::new(move |age| lived.lock().push(age)),
        }
    }

    fn setup(&self, bootstrap: bool, rotate: bool) -> ClientSetup {
        ClientSetup {
            kubeconfig: self.path("etc/kubelet.conf"),
            bootstrap_kubeconfig: bootstrap.then(|| self.path("bootstrap.conf")),
            cert_dir: self.path("pki"),
            node_name: "n1".into(),
            rotate,
            options: ClientOptions {
                clock: clock(),
                seed: 1,
                ..ClientOptions::default()
            },
            notice: self.notice.clone(),
            hooks: self.hooks(),
        }
    }

    fn certificate(&self, bootstrap: bool, rotate: bool) -> ClientCertificate {
        ClientCertificate::new(self.setup(bootstrap, rotate))
    }

    fn write_bootstrap(&self, address: &str, token: &str) {
        let text = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": address}}],
            "users": [{"name": "u", "user": {"token": token}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        });
        fs::write(self.path("bootstrap.conf"), text.to_string()).unwrap();
    }

    /// Writes a kubeconfig whose certificate is that of the store.
    fn write_kubeconfig(&self) {
        let pair = self.path("pki/kubelet-client-current.pem");
        let text = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": "http://api.test:8080"}}],
            "users": [{"name": "u", "user": {"client-certificate": pair, "client-key": pair}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        });
        fs::create_dir_all(self.path("etc")).unwrap();
        fs::write(self.path("etc/kubelet.conf"), text.to_string()).unwrap();
    }

    async fn told(&self, part: &str) -> String {
        let mut line = self.notice.subscribe();
        let found = line.wait_for(|line| line.as_ref().is_some_and(|line| line.contains(part)));
        found.await.unwrap().clone().unwrap()
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Lets the server in memory listen on loopback, for clients that are made from a file.
async fn listen(server: &TestServer) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let connector = server.config(false).connector.unwrap();
    tokio::spawn(async move {
        while let Ok((mut outside, _)) = listener.accept().await {
            if let Ok(mut inside) = (connector.connect)().await {
                tokio::spawn(async move {
                    tokio::io::copy_bidirectional(&mut outside, &mut inside)
                        .await
                        .ok();
                });
            }
        }
    });
    format!("http://{address}")
}

/// A client of the server in memory, with the identity of `config`.
fn client(server: &TestServer, config: ClientConfig) -> Client {
    let connector = server.config(false).connector;
    let options = ClientOptions {
        clock: clock(),
        ..ClientOptions::default()
    };
    Client::new(
        ClientConfig {
            connector,
            ..config
        },
        options,
    )
    .unwrap()
}

#[tokio::test]
async fn a_node_without_certificate_waits_for_its_approval_and_says_so() {
    let (node, signer) = (Node::new(), Signer::new(false));
    let server = signer.server();
    node.write_bootstrap(&listen(&server).await, "abcdef.0123456789abcdef");
    let mut certificate = node.certificate(true, false);
    let approve = async {
        let name = signer.nth(1).await;
        let line = node.told("approve").await;
        assert_eq!(
            line,
            format!("waiting for approval of CSR {name}: kubectl certificate approve {name}")
        );
        let pending = node.path("pki/kubelet-client.key.tmp");
        assert_eq!(mode(&pending), 0o600);
        assert!(!node.path("etc/kubelet.conf").exists());
        signer.approve(&name);
    };
    let (config, ()) = tokio::join!(certificate.config(), approve);
    let current = node.path("pki/kubelet-client-current.pem");
    match config.unwrap().identity {
        IdentitySource::Files { certificate, key } => {
            assert_eq!((&certificate, &key), (&current, &current));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(*node.notice.subscribe().borrow(), None);
    assert!(!node.path("pki/kubelet-client.key.tmp").exists());
    assert_eq!(
        (mode(&current), mode(&node.path("etc/kubelet.conf"))),
        (0o600, 0o600)
    );
    let text = fs::read_to_string(node.path("etc/kubelet.conf")).unwrap();
    assert!(!text.contains("abcdef"), "the token is not copied: {text}");
    let asked = server.asked();
    let authorization = asked[0].headers.get("authorization").unwrap();
    assert_eq!(authorization, "Bearer abcdef.0123456789abcdef");
    let spec = &signer.request(&signer.names()[0])["spec"];
    assert_eq!(
        spec["signerName"],
        "kubernetes.io/kube-apiserver-client-kubelet"
    );
    assert_eq!(spec["usages"], json!(["digital signature", "client auth"]));
    let ttl = certificate.expiry().ttl_seconds((clock())());
    assert!((ttl - days(10.0).as_secs_f64()).abs() < 5.0, "{ttl}");
}

#[tokio::test]
async fn a_restart_finds_the_request_that_waits() {
    let (node, signer) = (Node::new(), Signer::new(false));
    let server = signer.server();
    node.write_bootstrap(&listen(&server).await, "t");
    let mut first = node.certificate(true, true);
    tokio::select! {
        _ = first.config() => panic!("nobody approved"),
        _ = node.told("approve") => {}
    }
    drop(first);
    let mut second = node.certificate(true, true);
    let approve = async {
        // It asks again under the same name, and takes what it finds.
        while server
            .asked()
            .iter()
            .filter(|asked| asked.method == "POST")
            .count()
            < 2
        {
            tokio::task::yield_now().await;
        }
        signer.approve(&signer.names()[0]);
    };
    let (config, ()) = tokio::join!(second.config(), approve);
    assert!(config.is_ok());
    assert_eq!(signer.names().len(), 1);
}

#[tokio::test]
async fn a_token_that_is_not_accepted_is_reported_and_may_be_replaced() {
    let (node, signer) = (Node::new(), Signer::new(true));
    signer.refuse(Some(401));
    let server = signer.server();
    let address = listen(&server).await;
    node.write_bootstrap(&address, "old");
    let mut certificate = node.certificate(true, false);
    let replace = async {
        let line = node.told("kubeadm token create").await;
        assert!(line.starts_with("cannot request a certificate"), "{line}");
        assert!(!line.contains("old"), "{line}");
        node.write_bootstrap(&address, "new");
        signer.refuse(None);
    };
    let (config, ()) = tokio::join!(certificate.config(), replace);
    assert!(config.is_ok());
    let asked = server.asked();
    assert_eq!(asked.last().unwrap().headers["authorization"], "Bearer new");
    assert!(node.failed.load(Ordering::Relaxed) > 0);
}

#[tokio::test]
async fn a_kubeconfig_is_used_as_long_as_its_certificate_is_valid_and_the_nodes_own() {
    for (name, now, used) in [
        ("system:node:n1", "2027-01-15T00:00:00Z", true),
        ("system:node:n1", "2025-01-15T00:00:00Z", false),
        ("system:node:other", "2027-01-15T00:00:00Z", false),
        ("admin", "2027-01-15T00:00:00Z", true),
    ] {
        let (node, signer) = (Node::new(), Signer::new(true));
        let store = PairStore::new(&node.path("pki"), "kubelet-client");
        let made: Timestamp = now.parse().unwrap();
        store.update(&signer.pair(name, made), made).unwrap();
        node.write_kubeconfig();
        node.write_bootstrap(&listen(&signer.server()).await, "t");
        let config = node.certificate(true, false).config().await.unwrap();
        let asked = usize::from(!used);
        assert_eq!(signer.names().len(), asked, "{name} {now}");
        assert!(matches!(config.identity, IdentitySource::Files { .. }));
    }
}

#[tokio::test]
async fn a_lost_kubeconfig_is_written_again_for_the_certificate_that_is_there() {
    let (node, signer) = (Node::new(), Signer::new(true));
    let store = PairStore::new(&node.path("pki"), "kubelet-client");
    let now = (clock())();
    store
        .update(&signer.pair("system:node:n1", now), now)
        .unwrap();
    node.write_bootstrap(&listen(&signer.server()).await, "t");
    assert!(node.certificate(true, true).config().await.is_ok());
    assert_eq!(signer.names().len(), 0);
    assert!(node.path("etc/kubelet.conf").exists());
}

#[tokio::test(start_paused = true)]
async fn a_certificate_is_renewed_before_it_expires_and_the_client_shows_the_new_one() {
    let (node, signer) = (Node::new(), Signer::new(true));
    let now = (clock())();
    let store = PairStore::new(&node.path("pki"), "kubelet-client");
    store
        .update(&signer.pair("system:node:n1", now), now)
        .unwrap();
    node.write_kubeconfig();
    let mut certificate = node.certificate(false, true);
    let expiry = certificate.expiry();
    let config = certificate.config().await.unwrap();
    let IdentitySource::Shared(identity) = config.identity.clone() else {
        panic!("{:?}", config.identity);
    };
    let server = signer.server();
    let old = identity.current().unwrap();
    let began = Instant::now();
    let renewal = tokio::spawn(certificate.renew(client(&server, config)));
    signer.nth(1).await;
    let age = began.elapsed();
    assert!((days(7.0)..=days(9.1)).contains(&age), "{age:?}");
    settle().await;
    assert_ne!(identity.current().unwrap().cert, old.cert);
    let lived = node.lived.lock().clone();
    assert_eq!(lived.len(), 1);
    assert!((lived[0].as_secs_f64() - age.as_secs_f64()).abs() < 60.0);
    assert_eq!(fs::read_dir(node.path("pki")).unwrap().count(), 3);
    assert!(expiry.ttl_seconds((clock())()) > 0.0);
    renewal.abort();
}

#[tokio::test]
async fn clocks_ten_minutes_apart_do_not_hold_up_the_first_certificate() {
    for minutes in [-10, 10] {
        let (node, signer) = (Node::new(), Signer::new(true));
        signer.issue(SignedDuration::from_mins(minutes), days(365.0));
        node.write_bootstrap(&listen(&signer.server()).await, "t");
        for _ in 0..2 {
            let config = node.certificate(true, true).config().await.unwrap();
            assert!(matches!(config.identity, IdentitySource::Shared(_)));
            assert_eq!(signer.names().len(), 1, "{minutes} min");
            assert_eq!(*node.notice.subscribe().borrow(), None);
        }
    }
}

/// The certificate that is shown is valid by the signer's clock at any time, and is not asked for over and over.
#[tokio::test(start_paused = true)]
async fn clocks_ten_minutes_apart_cost_no_certificate() {
    const MINUTE: Duration = Duration::from_secs(60);
    for (minutes, life, requests) in [
        (-10, 60, 20..=50),
        (0, 60, 20..=40),
        (10, 60, 20..=40),
        // It is at its end when it arrives, by this node's clock.
        (-10, 10, 150..=300),
        (10, 10, 150..=280),
    ] {
        let (node, signer) = (Node::new(), Signer::new(true));
        signer.issue(SignedDuration::from_mins(minutes), life * MINUTE);
        let now = (clock())();
        let given = PairStore::new(&node.path("pki"), "kubelet-client");
        given.update(&signer.pair("admin", now), now).unwrap();
        node.write_kubeconfig();
        let mut certificate = node.certificate(false, true);
        let config = certificate.config().await.unwrap();
        let IdentitySource::Shared(identity) = config.identity.clone() else {
            panic!("{:?}", config.identity);
        };
        let server = signer.server();
        let renewal = tokio::spawn(certificate.renew(client(&server, config)));
        signer.nth(1).await;
        for _ in 0..24 * 60 {
            tokio::time::sleep(MINUTE).await;
            settle().await;
            let shown = Certificate::new(identity.current().unwrap()).unwrap();
            let (leaf, now) = (shown.leaf(), signer.now());
            assert!(
                leaf.not_before <= now && now <= leaf.not_after,
                "{minutes} min, {life} min of life: {leaf:?} at {now}"
            );
        }
        let made = signer.names().len();
        assert!(
            requests.contains(&made),
            "{minutes} min, {life} min of life: {made} requests"
        );
        let line = node.notice.subscribe().borrow().clone().unwrap_or_default();
        let expected = (minutes, life) == (-10, 10);
        assert_eq!(line.contains("compare the clocks"), expected, "{line}");
        renewal.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_certificate_that_came_with_the_kubeconfig_is_replaced_at_once() {
    let (node, signer) = (Node::new(), Signer::new(true));
    let given = PairStore::new(&node.path("given"), "kubelet-client");
    let now = (clock())();
    given.update(&signer.pair("admin", now), now).unwrap();
    node.write_kubeconfig();
    let text = fs::read_to_string(node.path("etc/kubelet.conf")).unwrap();
    fs::write(
        node.path("etc/kubelet.conf"),
        text.replace("/pki/", "/given/"),
    )
    .unwrap();
    let mut certificate = node.certificate(false, true);
    let config = certificate.config().await.unwrap();
    let began = Instant::now();
    let server = signer.server();
    let renewal = tokio::spawn(certificate.renew(client(&server, config)));
    signer.nth(1).await;
    assert!(began.elapsed() < Duration::from_secs(5));
    settle().await;
    assert!(node.path("pki/kubelet-client-current.pem").exists());
    renewal.abort();
}

#[tokio::test(start_paused = true)]
async fn a_request_that_was_denied_is_reported_and_made_again_later() {
    let (node, signer) = (Node::new(), Signer::new(false));
    let now = (clock())();
    let store = PairStore::new(&node.path("pki"), "kubelet-client");
    store
        .update(&signer.pair("system:node:old-name", now), now)
        .unwrap();
    node.write_kubeconfig();
    let mut certificate = node.certificate(false, true);
    let config = certificate.config().await.unwrap();
    let server = signer.server();
    let renewal = tokio::spawn(certificate.renew(client(&server, config)));
    let first = signer.nth(1).await;
    node.told("approve").await;
    signer.deny(&first);
    let line = node.told("denied").await;
    let said = "reason: KubectlDeny, message: This CSR was denied by kubectl certificate deny.";
    assert_eq!(line, format!("CSR {first} was denied, {said}"));
    let began = Instant::now();
    let second = signer.nth(2).await;
    assert_ne!(second, first);
    assert!(began.elapsed() >= Duration::from_secs(30));
    assert_eq!(node.failed.load(Ordering::Relaxed), 1);
    node.told("approve").await;
    signer.forget(&second);
    let third = signer.nth(3).await;
    assert_eq!(
        third, second,
        "what the cluster forgot is made again with the same key"
    );
    signer.approve(&third);
    let mut notice = node.notice.subscribe();
    notice.wait_for(Option::is_none).await.unwrap();
    let current = store.current().unwrap().unwrap();
    assert_eq!(current.leaf().common_name, "system:node:n1");
    renewal.abort();
}

#[tokio::test(start_paused = true)]
async fn a_certificate_that_expired_is_replaced_by_one_that_somebody_put_there() {
    let (node, signer) = (Node::new(), Signer::new(false));
    signer.refuse(Some(401));
    let wall = clock();
    let before = wall() - days(10.0);
    let store = PairStore::new(&node.path("pki"), "kubelet-client");
    store
        .update(&signer.pair("system:node:n1", before), before)
        .unwrap();
    node.write_kubeconfig();
    let mut certificate = node.certificate(false, true);
    let expiry = certificate.expiry();
    let config = certificate.config().await.unwrap();
    let server = signer.server();
    let renewal = tokio::spawn(certificate.renew(client(&server, config)));
    node.told("the credentials are not accepted").await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(expiry.ttl_seconds(wall()) < 0.0);
    let later = wall();
    store
        .update(&signer.pair("system:node:n1", later), later)
        .unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(expiry.ttl_seconds(wall()) > days(8.0).as_secs_f64());
    assert_eq!(*node.notice.subscribe().borrow(), None);
    renewal.abort();
}

fn names(addresses: &[(&'static str, &'static str)]) -> ServingNames {
    ServingNames::of_node(addresses.iter().copied())
}

#[tokio::test(start_paused = true)]
async fn the_ports_certificate_follows_the_nodes_addresses() {
    let (node, signer) = (Node::new(), Signer::new(false));
    let server = signer.server();
    let (sender, receiver) = watch::channel(names(&[("Hostname", "n1")]));
    let serving = ClusterServing {
        client: server.client(false),
        cert_dir: node.path("pki"),
        files: None,
        node_name: "n1".into(),
        names: receiver,
        dns_only: false,
        clock: clock(),
        notice: node.notice.clone(),
        hooks: node.hooks(),
    };
    let (shown, task) = serving.clone().start().unwrap();
    let task = tokio::spawn(task);
    node.told("waiting for the node's addresses").await;
    assert!(shown.certificate().is_none());
    assert!(shown.ttl_seconds((clock())()).is_infinite());
    sender.send_replace(names(&[("Hostname", "n1"), ("InternalIP", "10.0.0.1")]));
    let first = signer.nth(1).await;
    let spec = &signer.request(&first)["spec"];
    assert_eq!(spec["signerName"], "kubernetes.io/kubelet-serving");
    assert_eq!(spec["usages"], json!(["digital signature", "server auth"]));
    // While nobody has approved, the address changes: that request is of no use any more.
    node.told(&first).await;
    sender.send_replace(names(&[("Hostname", "n1"), ("InternalIP", "10.0.0.2")]));
    let second = signer.nth(2).await;
    node.told(&second).await;
    signer.approve(&second);
    node.notice
        .subscribe()
        .wait_for(Option::is_none)
        .await
        .unwrap();
    let certificate = shown.certificate().unwrap();
    let address = certificate.leaf().addresses.first().unwrap().to_string();
    assert_eq!(address, "10.0.0.2");
    assert!(certificate.leaf().dns_names.contains("n1"));
    task.abort();
    // After a restart it is shown at once.
    let (again, _) = serving.start().unwrap();
    assert_eq!(again.certificate().unwrap().leaf(), certificate.leaf());
}

#[tokio::test(start_paused = true)]
async fn until_the_cluster_has_issued_one_the_files_are_shown() {
    let (node, signer) = (Node::new(), Signer::new(false));
    let made = self_signed("n1", (clock())()).unwrap();
    let (certificate, key) = (node.path("c.pem"), node.path("k.pem"));
    fs::write(&certificate, made.chain_pem()).unwrap();
    fs::write(&key, made.key_pem()).unwrap();
    let (_sender, receiver) = watch::channel(names(&[("InternalIP", "10.0.0.1")]));
    let serving = ClusterServing {
        client: signer.server().client(false),
        cert_dir: node.path("pki"),
        files: Some((certificate, key)),
        node_name: "n1".into(),
        names: receiver,
        dns_only: false,
        clock: clock(),
        notice: node.notice.clone(),
        hooks: node.hooks(),
    };
    let (shown, task) = serving.start().unwrap();
    let task = tokio::spawn(task);
    assert!(shown.certificate().unwrap().leaf().dns_names.contains("n1"));
    let name = signer.nth(1).await;
    node.told(&name).await;
    signer.approve(&name);
    node.notice
        .subscribe()
        .wait_for(Option::is_none)
        .await
        .unwrap();
    let common_name = shown.certificate().unwrap().leaf().common_name.clone();
    assert_eq!(common_name, "system:node:n1");
    task.abort();
}
