//! Static pods on a node of a cluster.

use crate::joined::{IMAGE, Joined};
use crate::outside::TIMEOUT;

fn manifest(image: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: static}}\nspec:\n  \
         terminationGracePeriodSeconds: 1\n  containers:\n  \
         - {{name: main, image: {image:?}, imagePullPolicy: IfNotPresent, \
         command: [sh, -c, 'trap \"exit 0\" TERM; echo hello; while :; do sleep 0.1; done']}}\n"
    )
}

#[test]
fn a_static_pod_runs_whatever_happens_to_its_mirror_pod() {
    let joined = Joined::start("worker");
    joined
        .agent
        .write_manifest("static.yaml", &manifest(IMAGE))
        .unwrap();
    let seen = joined.wait_ready("static-worker");
    let annotations = &seen["metadata"]["annotations"];
    assert_eq!(annotations["kubernetes.io/config.source"], "file");
    let hash = &annotations["kubernetes.io/config.hash"];
    assert!(hash.is_string());
    assert_eq!(&annotations["kubernetes.io/config.mirror"], hash);
    assert_eq!(seen["metadata"]["ownerReferences"][0]["kind"], "Node");
    assert_eq!(joined.kubectl.stdout(&["logs", "static-worker"]), "hello\n");
    let container = joined.truth.running("static-worker", "main").unwrap();
    let container = container.unwrap().id;

    joined
        .kubectl
        .stdout(&["delete", "pod", "static-worker", "--wait=false"]);
    let uid = seen["metadata"]["uid"].clone();
    joined.wait_pod("static-worker", "is shown again", |pod| {
        pod["metadata"]["uid"] != uid && crate::joined::condition(pod, "Ready") == "True"
    });
    let still = joined.truth.running("static-worker", "main").unwrap();
    assert_eq!(still.unwrap().id, container, "nothing happened to it");

    joined.agent.remove_manifest("static.yaml").unwrap();
    joined.wait_gone("static-worker");
    joined.wait_empty();
    joined.cluster.no_violations().unwrap();
}

/// A pod that terminates only when the file `/tmp/end` exists.
fn holds_on(note: &str) -> String {
    let wait = "trap \"until test -e /tmp/end; do sleep 0.1; done; exit 0\" TERM";
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: static}}\nspec:\n  \
         terminationGracePeriodSeconds: 600\n  containers:\n  \
         - {{name: main, image: {IMAGE:?}, imagePullPolicy: IfNotPresent, \
         command: [sh, -c, '{wait}; echo {note}; while :; do sleep 0.1; done']}}\n"
    )
}

#[test]
fn an_edited_static_pod_ends_before_the_next_one_starts() {
    let mut joined = Joined::start("worker");
    let write = |joined: &Joined, text: &str| {
        joined.agent.write_manifest("static.yaml", text).unwrap();
    };
    write(&joined, &holds_on("one"));
    let uid = joined.wait_ready("static-worker")["metadata"]["uid"].clone();
    let old = joined
        .truth
        .running("static-worker", "main")
        .unwrap()
        .unwrap();
    write(&joined, &holds_on("two"));
    let is_ending = |agent: &rubelet_testbed::Agent| {
        let pods = agent.pods()?;
        let ending = |pod: &serde_json::Value| pod["metadata"]["deletionTimestamp"].is_string();
        Ok(pods.iter().any(ending).then_some(()))
    };
    let wait = |joined: &Joined| {
        let waited = joined.agent.wait_for("the pod ends", TIMEOUT, is_ending);
        waited.unwrap();
        let shown = joined.wait_pod("static-worker", "is there", |_| true);
        assert_eq!(shown["metadata"]["uid"], uid, "the old one is shown");
        assert_eq!(shown["status"]["phase"], "Running");
        let running = joined.truth.running("static-worker", "main").unwrap();
        assert_eq!(running.unwrap().id, old.id, "and runs alone");
    };
    wait(&joined);
    // A kill of the agent in the middle changes nothing.
    joined.agent.kill9().unwrap();
    joined.agent.start().unwrap();
    wait(&joined);
    joined.truth.exec(&old.id, &["touch", "/tmp/end"]).unwrap();
    joined.wait_pod("static-worker", "is another one", |pod| {
        pod["metadata"]["uid"] != uid && crate::joined::condition(pod, "Ready") == "True"
    });
    assert_eq!(joined.kubectl.stdout(&["logs", "static-worker"]), "two\n");
    let new = joined.truth.running("static-worker", "main").unwrap();
    let end = joined.truth.exec(&new.unwrap().id, &["touch", "/tmp/end"]);
    end.unwrap();
    joined.agent.remove_manifest("static.yaml").unwrap();
    joined.wait_gone("static-worker");
    joined.wait_empty();
    joined.cluster.no_violations().unwrap();
}
