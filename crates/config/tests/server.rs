//! Which ports are opened, and how clients are authenticated.

use rubelet_config::{Resolved, Sources, parse_flags, resolve};

const HEAD: &str = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";

fn resolved(file: Option<&str>, drop_in: Option<&str>, args: &[&str]) -> Resolved {
    let flags = parse_flags(args.iter().map(|&arg| arg.to_owned())).expect("the flags are valid");
    let file = file.map(|text| format!("{HEAD}{text}"));
    let drop_ins: Vec<(String, String)> = drop_in
        .map(|text| ("a.conf".to_owned(), format!("{HEAD}{text}")))
        .into_iter()
        .collect();
    resolve(Sources {
        file: file.as_deref().map(|text| ("k.yaml", text)),
        drop_ins: &drop_ins,
        flags: &flags,
    })
    .unwrap_or_else(|error| panic!("{error}"))
}

fn secure(resolved: &Resolved) -> String {
    match resolved.secure_address() {
        Ok(Some(address)) => address.to_string(),
        Ok(None) => "closed".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn without_a_cluster_no_port_opens_unless_configured() {
    for (file, expected) in [
        ("maxPods: 3\n", "closed"),
        ("address: 127.0.0.1\n", "closed"),
        ("enableServer: false\nport: 10250\n", "closed"),
        (
            "port: 10250\nauthorization: {mode: AlwaysAllow}\n",
            "0.0.0.0:10250",
        ),
        (
            "enableServer: true\naddress: \"::1\"\nauthorization: {mode: AlwaysAllow}\n",
            "[::1]:10250",
        ),
        (
            "port: 1\n",
            "authorization.mode: requires an API server, but --kubeconfig is not set; set AlwaysAllow, or disable the HTTPS server",
        ),
        (
            "port: 1\nauthorization: {mode: Webhook}\n",
            "k.yaml: authorization.mode: requires an API server, but --kubeconfig is not set; set AlwaysAllow, or disable the HTTPS server",
        ),
        (
            "port: 1\nauthorization: {mode: AlwaysAllow}\nauthentication: {webhook: {enabled: true}}\n",
            "k.yaml: authentication.webhook.enabled: requires an API server, but --kubeconfig is not set; set false, and set clientCAFile",
        ),
    ] {
        let resolved = resolved(Some(file), None, &[]);
        assert_eq!(secure(&resolved), expected, "{file}");
        assert_eq!(resolved.read_only_address(), None);
        assert!(!resolved.joined);
    }
    let asked = resolved(None, None, &["--read-only-port=10255"]);
    let address = asked.read_only_address().unwrap();
    assert_eq!(address.to_string(), "0.0.0.0:10255");
    assert_eq!(secure(&asked), "closed");
}

#[test]
fn a_node_of_a_cluster_opens_its_port() {
    let joined = resolved(Some("maxPods: 3\n"), None, &["--kubeconfig=/k"]);
    assert_eq!(secure(&joined), "0.0.0.0:10250");
    assert_eq!(joined.config.authorization.mode, "Webhook");
    assert_eq!(joined.read_only_address(), None);
    assert!(joined.warnings.is_empty());
    let off = resolved(Some("enableServer: false\n"), None, &["--kubeconfig=/k"]);
    assert_eq!(secure(&off), "closed");
}

#[test]
fn a_node_without_a_file_has_the_kubelets_old_defaults_and_says_so() {
    let open = resolved(None, None, &["--kubeconfig=/k"]);
    assert!(open.config.authentication.anonymous.enabled);
    assert!(!open.config.authentication.webhook.enabled);
    assert_eq!(open.config.authorization.mode, "AlwaysAllow");
    assert_eq!(open.config.read_only_port, 10_255);
    let warnings: Vec<String> = open.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "authentication.anonymous.enabled: without --config the kubelet's legacy defaults apply: authentication.anonymous.enabled: true, authentication.webhook.enabled: false, authorization.mode: \"AlwaysAllow\", readOnlyPort: 10255; set --config to use those of kubelet.config.k8s.io/v1beta1"
        ]
    );
}

#[test]
fn flags_and_drop_ins_change_the_old_defaults() {
    let closed = [
        "--kubeconfig=/k",
        "--anonymous-auth=false",
        "--authentication-token-webhook",
        "--authorization-mode=Webhook",
        "--read-only-port=0",
    ];
    let drop_in = "readOnlyPort: 0\nauthentication: {anonymous: {enabled: false}, webhook: {enabled: true}}\nauthorization: {mode: Webhook}\n";
    for resolved in [
        resolved(None, None, &closed),
        resolved(None, Some(drop_in), &["--kubeconfig=/k"]),
    ] {
        assert!(!resolved.config.authentication.anonymous.enabled);
        assert!(resolved.config.authentication.webhook.enabled);
        assert_eq!(resolved.config.authorization.mode, "Webhook");
        assert_eq!(resolved.config.read_only_port, 0);
        assert!(resolved.warnings.is_empty(), "{:?}", resolved.warnings);
    }
}
