//! A real kubectl, through a TCP port that is forwarded to the socket.

use k8s_openapi::api::core::v1::Pod;

use crate::Shown;
use crate::outside::children::Lines;
use crate::outside::kubectl::Kubectl;
use crate::outside::{self, PodText, TIMEOUT};

#[test]
fn kubectl_reads_pods_logs_events_and_manifests() {
    let shown = Shown::shared();
    let kubectl = Kubectl::to(&shown.agent.api_socket());

    let table = kubectl.stdout(&["get", "pods", "-o", "wide"]);
    let head = table.lines().next().unwrap();
    for heading in ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE"] {
        assert!(head.contains(heading), "{table}");
    }
    let row = |name: &str| {
        let row = table.lines().find(|line| line.starts_with(name));
        let cells = row.unwrap_or_else(|| panic!("{table}")).split_whitespace();
        cells.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(row("db-testnode")[1..4], ["2/2", "Running", "0"]);
    assert_eq!(row("web-testnode")[6], "testnode");
    let everywhere = kubectl.stdout(&["get", "po", "-A", "--no-headers"]);
    assert_eq!(everywhere.lines().count(), 3, "{everywhere}");
    assert!(everywhere.contains("apart-testnode"), "{everywhere}");
    let own = shown
        .agent
        .cli(&["get", "pods", "--no-headers"])
        .unwrap()
        .stdout;
    let names = |text: &str| -> Vec<String> {
        let firsts = text
            .lines()
            .filter_map(|line| line.split_whitespace().next());
        firsts.map(str::to_owned).collect()
    };
    let theirs = kubectl.stdout(&["get", "pods", "--no-headers"]);
    assert_eq!(names(&own), names(&theirs));

    let json = kubectl.stdout(&["get", "pod", "web-testnode", "-o", "json"]);
    let pod: Pod = serde_json::from_str(&json).unwrap();
    assert_eq!(pod.metadata.name.as_deref(), Some("web-testnode"));
    let path = "jsonpath={.status.phase}";
    assert_eq!(
        kubectl.stdout(&["get", "pod", "web-testnode", "-o", path]),
        "Running"
    );
    let selected = kubectl.stdout(&[
        "get",
        "pods",
        "--field-selector",
        "metadata.name=db-testnode",
        "-o",
        "name",
    ]);
    assert_eq!(selected, "pod/db-testnode\n");

    let described = kubectl.stdout(&["describe", "pod", "db-testnode"]);
    for part in [
        "Init Containers:",
        "sidecar:",
        "QoS Class:",
        "Started",
        "testnode",
    ] {
        assert!(described.contains(part), "{part} in {described}");
    }
    assert_eq!(
        kubectl.stdout(&["logs", "web-testnode"]),
        "hello from web\n"
    );
    assert_eq!(
        kubectl.stdout(&["logs", "--tail=1", "pod/web-testnode"]),
        "hello from web\n"
    );
    let events = kubectl.stdout(&["get", "events"]);
    assert!(
        events.contains("Started") && events.contains("pod/web-testnode"),
        "{events}"
    );
    let of_web = "involvedObject.name=web-testnode";
    let events = kubectl.stdout(&["get", "events", "--field-selector", of_web]);
    assert!(
        events.contains("Started") && !events.contains("db-testnode"),
        "{events}"
    );

    let resources = kubectl.stdout(&["api-resources"]);
    for part in ["pods", "events", "manifests"] {
        assert!(resources.contains(part), "{resources}");
    }
    let manifests = kubectl.stdout(&["get", "manifests"]);
    assert!(manifests.contains("web.yaml"), "{manifests}");
    let version = kubectl.stdout(&["version"]);
    assert!(version.contains("Server Version: "), "{version}");
    assert!(version.contains("+rubelet."), "{version}");
}

#[test]
fn kubectl_reports_unsupported_requests() {
    let shown = Shown::shared();
    let kubectl = Kubectl::to(&shown.agent.api_socket());
    let missing = kubectl.run(&["get", "pod", "nothing"]);
    assert_eq!(missing.code, 1);
    assert!(
        missing.stderr.contains("pods \"nothing\" not found"),
        "{missing:?}"
    );
    let delete = kubectl.run(&["delete", "pod", "web-testnode"]);
    assert_eq!(delete.code, 1, "{delete:?}");
    assert!(
        delete.stderr.contains("the pod is kept by manifest")
            && delete.stderr.contains("web.yaml: remove or move that file"),
        "{delete:?}"
    );
    let label = kubectl.run(&["label", "pod", "web-testnode", "a=b"]);
    assert_eq!(label.code, 1, "{label:?}");
    assert!(
        label.stderr.contains("pods come from manifests"),
        "{label:?}"
    );
    let nodes = kubectl.run(&["get", "nodes"]);
    assert_eq!(nodes.code, 1, "{nodes:?}");
    assert!(nodes.stderr.contains("nodes"), "{nodes:?}");
}

#[test]
fn kubectl_watches_and_follows() {
    let (_runtime, agent) = outside::with_pods(&[PodText::new("web").script(
        "trap 'exit 0' TERM; echo first; while ! [ -e /tmp/go ]; do sleep 0.1; done; echo second; \
         while :; do sleep 3600 & wait $!; done",
    )]);
    let truth = _runtime.truth().unwrap();
    let kubectl = Kubectl::to(&agent.api_socket());
    let mut pods = Lines::start(kubectl.command().args(["get", "pods", "-w"]));
    let mut logs = Lines::start(kubectl.command().args(["logs", "-f", "web-testnode"]));
    pods.wait("the pod", TIMEOUT, |line| line.starts_with("web-testnode"));
    logs.wait("the first line", TIMEOUT, |line| line == "first");

    let container = truth.running("web-testnode", "main").unwrap().unwrap();
    truth.exec(&container.id, &["touch", "/tmp/go"]).unwrap();
    logs.wait("the second line", TIMEOUT, |line| line == "second");
    agent
        .write_manifest("more.yaml", &PodText::new("more").yaml())
        .unwrap();
    pods.wait("a pod that comes", TIMEOUT, |line| {
        line.starts_with("more-testnode") && line.contains("1/1")
    });
    agent.remove_manifest("web.yaml").unwrap();
    pods.wait("a pod that goes", TIMEOUT, |line| {
        line.starts_with("web-testnode") && line.contains("Terminating")
    });
    assert_eq!(logs.end(), Some(0), "the log ends with its container");
}
