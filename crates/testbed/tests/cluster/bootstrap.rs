//! A node without a certificate.

use rubelet_testbed::{Agent, Cluster, TestRuntime};
use serde_json::{Value, json};

use crate::joined::{condition, wait_stdout};
use crate::outside::TIMEOUT;
use crate::outside::kubectl::Kubectl;

#[test]
fn a_new_node_requests_a_certificate_and_joins() {
    let runtime = TestRuntime::start().unwrap();
    let cluster = Cluster::start().unwrap();
    let builder = cluster
        .bootstrap(Agent::builder(&runtime), "fresh")
        .unwrap();
    let mut agent = builder.start().unwrap();
    let waits = |agent: &Agent| {
        let status = agent.cli(&["status"])?;
        Ok(status
            .stdout
            .contains("kubectl certificate approve")
            .then_some(status))
    };
    let status = agent.wait_for("the request", TIMEOUT, waits).unwrap();
    assert_eq!(status.code, 1);
    assert!(status.stdout.contains("ready: no"), "{}", status.stdout);

    let kubectl = Kubectl::of_cluster(&cluster);
    let requests = kubectl.stdout(&["get", "csr", "-o", "name"]);
    let request = requests.trim();
    assert_eq!(request.lines().count(), 1, "{requests}");
    // After a restart it waits for the same request.
    agent.restart().unwrap();
    agent.wait_for("the same request", TIMEOUT, waits).unwrap();
    assert_eq!(kubectl.stdout(&["get", "csr", "-o", "name"]), requests);
    approve(&cluster, &kubectl, request);
    wait_stdout(&kubectl, &["get", "nodes", "--no-headers"], |text| {
        text.contains(" Ready ")
    });
    let node = cluster.api().get("nodes", "", "fresh").unwrap().unwrap();
    assert_eq!(condition(&node, "Ready"), "True");
    agent.wait_ready(TIMEOUT).unwrap();
    // The pods of the API server may become known a little later.
    let works = |agent: &Agent| Ok((agent.cli(&["status"])?.code == 0).then_some(()));
    agent.wait_for("the node works", TIMEOUT, works).unwrap();

    let mode = |name: &str| {
        use std::os::unix::fs::PermissionsExt as _;
        let metadata = std::fs::metadata(cluster.path(name)).unwrap();
        metadata.permissions().mode() & 0o777
    };
    for secret in ["kubelet.conf", "pki/kubelet-client-current.pem"] {
        assert_eq!(mode(secret), 0o600, "{secret}");
    }
    agent.restart().unwrap();
    agent.wait_ready(TIMEOUT).unwrap();
    assert_eq!(kubectl.stdout(&["get", "csr", "-o", "name"]), requests);
    cluster.no_violations().unwrap();
}

/// As `kubectl certificate approve` does; newer ones use a format that the model does not support.
fn approve(cluster: &Cluster, kubectl: &Kubectl, request: &str) {
    let name = request.rsplit_once('/').unwrap().1;
    let text = kubectl.stdout(&["get", "csr", name, "-o", "json"]);
    let mut request: Value = serde_json::from_str(&text).unwrap();
    request["status"]["conditions"] = json!([{
        "type": "Approved",
        "status": "True",
        "reason": "KubectlApprove",
        "message": "This CSR was approved by kubectl certificate approve.",
    }]);
    let file = cluster.path("csr.json");
    std::fs::write(&file, request.to_string()).unwrap();
    let path = format!("/apis/certificates.k8s.io/v1/certificatesigningrequests/{name}/approval");
    let file = file.display().to_string();
    kubectl.stdout(&["replace", "--raw", &path, "-f", &file]);
}
