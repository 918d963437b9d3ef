//! Kubeconfigs as they are written by kubeadm, kind, k3s and by hand.

use std::path::PathBuf;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rcgen::{CertificateParams, KeyPair};

use super::*;
use crate::{Credential, ExecVersion, IdentitySource, Proxy, Roots};

/// A directory with `ca.pem`, `client.pem`, `client.key` and `token`.
fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::default().self_signed(&key).unwrap();
    for (name, text) in [
        ("ca.pem", pem("CERTIFICATE", certificate.der())),
        ("client.pem", pem("CERTIFICATE", certificate.der())),
        ("client.key", pem("PRIVATE KEY", &key.serialize_der())),
        ("token", "from-file\n".to_owned()),
    ] {
        std::fs::write(directory.path().join(name), text).unwrap();
    }
    directory
}

fn pem(label: &str, der: &[u8]) -> String {
    let body = STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
}

/// A kubeconfig with these lines for cluster and user.
fn text(cluster: &str, user: &str) -> String {
    let lines = |text: &str| {
        let lines = text.lines().map(|line| format!("    {line}\n"));
        lines.collect::<String>()
    };
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
         contexts:\n- name: c\n  context: {{cluster: k, user: u}}\n\
         clusters:\n- name: k\n  cluster:\n{}users:\n- name: u\n  user:\n{}",
        lines(cluster),
        lines(user)
    )
}

fn resolve(
    directory: &tempfile::TempDir,
    cluster: &str,
    user: &str,
) -> Result<ClientConfig, String> {
    let path = directory.path().join("kubeconfig");
    let parsed = Kubeconfig::parse(&text(cluster, user), &path);
    let resolved = parsed.and_then(|file| file.client_config(None));
    resolved.map_err(|error| {
        let text = error.to_string();
        let prefix = format!("kubeconfig {}: ", path.display());
        text.strip_prefix(&prefix).unwrap_or(&text).to_owned()
    })
}

#[test]
fn files_are_relative_to_the_kubeconfig() {
    let directory = directory();
    let config = resolve(
        &directory,
        "server: https://10.0.0.1:6443\ncertificate-authority: ca.pem\ntls-server-name: api\nproxy-url: http://proxy:3128",
        "client-certificate: client.pem\nclient-key: client.key",
    )
    .unwrap();
    assert_eq!(config.server.to_string(), "https://10.0.0.1:6443");
    assert_eq!(config.roots, Roots::File(directory.path().join("ca.pem")));
    assert_eq!(config.tls_server_name.as_deref(), Some("api"));
    assert_eq!(config.proxy, Proxy::Http("http://proxy:3128".into()));
    assert!(matches!(config.credential, Credential::None));
    let IdentitySource::Files { certificate, key } = config.identity else {
        panic!("files that may change are read again");
    };
    assert_eq!(certificate, directory.path().join("client.pem"));
    assert_eq!(key, directory.path().join("client.key"));
}

#[test]
fn inline_data_wins_over_files() {
    let directory = directory();
    let data = |name: &str| STANDARD.encode(std::fs::read(directory.path().join(name)).unwrap());
    let config = resolve(
        &directory,
        &format!(
            "server: https://h\ncertificate-authority: missing\ncertificate-authority-data: {}",
            data("ca.pem")
        ),
        &format!(
            "client-certificate: missing\nclient-certificate-data: {}\nclient-key-data: {}",
            data("client.pem"),
            data("client.key")
        ),
    )
    .unwrap();
    assert!(matches!(config.roots, Roots::Pem(_)));
    assert!(matches!(config.identity, IdentitySource::Shared(cell) if cell.current().is_some()));
}

#[test]
fn tokens_come_from_the_text_or_a_file() {
    let directory = directory();
    let credential = |user| {
        resolve(&directory, "server: https://h", user)
            .unwrap()
            .credential
    };
    assert!(
        matches!(credential("token: abc"), Credential::Token(token) if token.expose() == "abc")
    );
    assert!(
        matches!(credential("tokenFile: token"), Credential::TokenFile { path, otherwise: None }
        if path == directory.path().join("token"))
    );
    assert!(matches!(
        credential("tokenFile: missing\ntoken: abc"),
        Credential::TokenFile {
            otherwise: Some(_),
            ..
        }
    ));
    assert!(matches!(
        credential("username: a\npassword: b"),
        Credential::Basic { .. }
    ));
    assert!(matches!(credential(""), Credential::None));
}

#[test]
fn a_plugin_is_reported_about_the_cluster_if_it_asks() {
    let directory = directory();
    let cluster = "server: https://h\ncertificate-authority: ca.pem\nextensions:\n- name: client.authentication.k8s.io/exec\n  extension: {audience: x}";
    let user = "exec:\n  apiVersion: client.authentication.k8s.io/v1\n  command: bin/plugin\n  args: [a]\n  env:\n  - {name: VAR, value: V}\n  provideClusterInfo: true\n  interactiveMode: Never";
    let Credential::Exec(plugin) = resolve(&directory, cluster, user).unwrap().credential else {
        panic!("a plugin");
    };
    assert_eq!(plugin.version, ExecVersion::V1);
    assert_eq!(plugin.command, directory.path().join("bin/plugin"));
    assert_eq!(plugin.env, [("VAR".to_owned(), "V".to_owned())]);
    let told = plugin.cluster.unwrap();
    assert_eq!(told["server"], "https://h");
    assert_eq!(told["config"]["audience"], "x");
    assert!(told["certificate-authority-data"].is_string());

    let user = "exec:\n  apiVersion: client.authentication.k8s.io/v1beta1\n  command: plugin";
    let Credential::Exec(plugin) = resolve(&directory, cluster, user).unwrap().credential else {
        panic!("a plugin");
    };
    assert_eq!(
        plugin.command,
        PathBuf::from("plugin"),
        "looked for in PATH"
    );
    assert_eq!(plugin.cluster, None);
}

#[test]
fn each_mistake_names_its_field() {
    let directory = directory();
    let good = "server: https://h";
    let exec = "exec:\n  command: p\n  apiVersion: client.authentication.k8s.io/v1";
    for (cluster, user, expected) in [
        ("{}", "token: t", "clusters[0].cluster.server: not set"),
        (
            "server: ftp://h",
            "token: t",
            "clusters[0].cluster.server: unsupported scheme",
        ),
        (
            "server: https://h\ncertificate-authority: none.pem",
            "",
            "clusters[0].cluster.certificate-authority: cannot read",
        ),
        (
            "server: https://h\ncertificate-authority-data: '%'",
            "",
            "clusters[0].cluster.certificate-authority-data: not base64",
        ),
        (
            "server: https://h\ninsecure-skip-tls-verify: true\ncertificate-authority: ca.pem",
            "",
            "certificate-authority: contradicts insecure-skip-tls-verify",
        ),
        (
            "server: https://h\nproxy-url: socks5://p:1",
            "",
            "clusters[0].cluster.proxy-url:",
        ),
        (
            good,
            "client-certificate: client.pem",
            "client-certificate: there is no client-key",
        ),
        (
            good,
            "client-key: client.key",
            "client-key: there is no certificate",
        ),
        (
            good,
            "client-certificate: ca.pem\nclient-key: token",
            "client-certificate: no private key",
        ),
        (
            good,
            "tokenFile: missing",
            "users[0].user.tokenFile: cannot read",
        ),
        (good, "token: t\nusername: u", "token: contradicts username"),
        (
            good,
            "as: somebody",
            "users[0].user.as: impersonation is not supported",
        ),
        (
            good,
            "as-groups: [g]",
            "users[0].user.as-groups: impersonation",
        ),
        (
            good,
            "auth-provider: {name: gcp}",
            "auth-provider: not supported",
        ),
        (
            good,
            "exec: {command: p, apiVersion: client.authentication.k8s.io/v1alpha1}",
            "exec.apiVersion:",
        ),
        (
            good,
            "exec: {apiVersion: client.authentication.k8s.io/v1}",
            "exec.command: not set",
        ),
        (good, exec, "exec.interactiveMode: not set"),
        (
            good,
            &format!("{exec}\n  interactiveMode: Always"),
            "a node has no terminal",
        ),
        (
            good,
            "token: [secret]",
            "users[0].user.token: expected a text",
        ),
        (good, "token: 12345", "users[0].user.token: expected a text"),
    ] {
        let error = resolve(&directory, cluster, user).map(drop).unwrap_err();
        assert!(error.contains(expected), "{error}\nexpected: {expected}");
        assert!(
            !error.contains("secret") && !error.contains("12345"),
            "{error}"
        );
    }
}

#[test]
fn contexts_are_found_by_name() {
    let path = Path::new("/etc/kubernetes/kubelet.conf");
    let error = |text: &str, context: Option<&str>| {
        let file = Kubeconfig::parse(text, path).unwrap();
        file.client_config(context)
            .map(drop)
            .unwrap_err()
            .to_string()
    };
    let whole = text("server: https://h", "token: t");
    assert_eq!(
        error(&whole, Some("other")),
        "kubeconfig /etc/kubernetes/kubelet.conf: current-context: there is no \"other\"; the list contexts has \"c\""
    );
    assert!(error("{}", None).contains("current-context: not set; the list contexts is empty"));
    let other = whole.replace("cluster: k,", "cluster: x,");
    assert!(error(&other, None).contains("contexts[0].context.cluster: there is no \"x\""));
    let doubled = format!("{whole}- name: u\n  user: {{}}\n");
    assert!(
        error(&doubled, None).contains("users[1].name"),
        "{}",
        error(&doubled, None)
    );
    for (text, expected) in [
        ("", "the file is empty"),
        ("a: b: c", "line 1"),
        ("kind: Pod", "expected v1 Config"),
        ("clusters: 1", "clusters:"),
    ] {
        let error = Kubeconfig::parse(text, path).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert!(Kubeconfig::load(Path::new("/nowhere")).is_err());
}

#[test]
fn misspelt_fields_are_reported_and_secrets_are_not() {
    let text = text("server: https://h\ncertificate_authority: x", "token: abc");
    let file = Kubeconfig::parse(&text, Path::new("k")).unwrap();
    assert_eq!(file.warnings().len(), 1);
    assert!(
        file.warnings()[0].contains("certificate_authority"),
        "{:?}",
        file.warnings()
    );
    let shown = format!("{file:?} {:?}", file.client_config(None).unwrap());
    assert!(!shown.contains("abc"), "{shown}");
}

#[test]
fn what_is_written_after_a_bootstrap_is_read_back() {
    let directory = directory();
    let text = text(
        "server: https://10.0.0.1:6443\ncertificate-authority: ca.pem\ntls-server-name: api",
        "token: bootstrap",
    );
    let file = Kubeconfig::parse(&text, &directory.path().join("bootstrap.conf")).unwrap();
    let (certificate, key) = (
        directory.path().join("client.pem"),
        directory.path().join("client.key"),
    );
    let written = file
        .with_client_certificate(None, &certificate, &key)
        .unwrap();
    assert!(!written.contains("bootstrap"), "{written}");
    let read = Kubeconfig::parse(&written, Path::new("/elsewhere/kubelet.conf")).unwrap();
    assert!(read.warnings().is_empty());
    let config = read.client_config(None).unwrap();
    assert_eq!(config.server.to_string(), "https://10.0.0.1:6443");
    assert_eq!(config.roots, Roots::File(directory.path().join("ca.pem")));
    assert_eq!(config.tls_server_name.as_deref(), Some("api"));
    assert!(matches!(config.identity, IdentitySource::Files { .. }));
}
