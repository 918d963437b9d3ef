//! The files for the programs of a control plane.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::json;
use sim_api::{Authority, Credentials, Identity, User};

use super::{BOOTSTRAP_GROUP, BOOTSTRAP_TOKEN, LIFETIME, now};

/// The names in the server's own certificate.
const SERVER_NAMES: [&str; 4] = [
    "127.0.0.1",
    "localhost",
    "kubernetes",
    "kubernetes.default.svc",
];

/// The users of the programs: the file's name, the user, and its group.
const CLIENTS: [(&str, &str, &[&str]); 2] = [
    ("controllers", "system:kube-controller-manager", &[]),
    ("scheduler", "system:kube-scheduler", &[]),
];

/// The directory of these files.
#[derive(Debug, Clone)]
pub(super) struct Files {
    dir: PathBuf,
}

impl Files {
    /// Writes all files, for a server at `url`.
    pub(super) fn write(dir: &Path, authority: &Authority, url: &str) -> Result<Self> {
        let files = Self {
            dir: dir.to_owned(),
        };
        let now = now()?;
        files.put("ca.crt", &authority.pem())?;
        files.put("ca.key", &authority.key_pem())?;
        let names = SERVER_NAMES.map(str::to_owned).to_vec();
        files.pair("apiserver", &authority.server(names, now, LIFETIME)?)?;
        let to_nodes = User::new("kube-apiserver-kubelet-client", &["system:masters"]);
        files.pair("to-nodes", &authority.client(&to_nodes, now, LIFETIME)?)?;
        // Only its keys are used: to sign and verify tokens.
        let accounts = User::new("service-accounts", &[]);
        files.pair("accounts", &authority.client(&accounts, now, LIFETIME)?)?;
        for (file, user, groups) in CLIENTS {
            let identity = authority.client(&User::new(user, groups), now, LIFETIME)?;
            let text = Credentials::Certificate(identity).kubeconfig(url, Some(&authority.pem()));
            files.put(&format!("{file}.kubeconfig"), &text)?;
        }
        let policy = json!({
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Policy",
            "omitStages": ["RequestReceived"],
            "rules": [
                { "level": "Metadata", "userGroups": ["system:nodes"] },
                { "level": "None" },
            ],
        });
        files.put("audit-policy.json", &policy.to_string())?;
        Ok(files)
    }

    /// The path of a file.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    fn pair(&self, name: &str, identity: &Identity) -> Result<()> {
        self.put(&format!("{name}.crt"), &identity.certificate_pem)?;
        self.put(&format!("{name}.key"), &identity.key_pem)
    }

    fn put(&self, name: &str, text: &str) -> Result<()> {
        let path = self.path(name);
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(&path);
        file.and_then(|mut file| file.write_all(text.as_bytes()))
            .with_context(|| format!("cannot write {}", path.display()))
    }
}

/// Objects that a cluster needs before a node can request a certificate, as kubeadm creates them:
/// the token, and the right of its group. Each with the path of its collection.
pub(super) fn bootstrap_objects() -> [(&'static str, serde_json::Value); 2] {
    let (id, secret) = BOOTSTRAP_TOKEN.split_once('.').unwrap_or_default();
    let token = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "bootstrap.kubernetes.io/token",
        "metadata": { "name": format!("bootstrap-token-{id}"), "namespace": "kube-system" },
        "stringData": {
            "token-id": id,
            "token-secret": secret,
            "usage-bootstrap-authentication": "true",
        },
    });
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "apiVersion": format!("{group}/v1"),
        "kind": "ClusterRoleBinding",
        "metadata": { "name": "kubeadm:kubelet-bootstrap" },
        "roleRef": {
            "apiGroup": group, "kind": "ClusterRole", "name": "system:node-bootstrapper",
        },
        "subjects": [{ "apiGroup": group, "kind": "Group", "name": BOOTSTRAP_GROUP }],
    });
    [
        ("/api/v1/namespaces/kube-system/secrets", token),
        (
            "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
            binding,
        ),
    ]
}
