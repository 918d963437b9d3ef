//! Static pods of a node of a cluster.

use crate::joined::{IMAGE, Joined};

fn manifest(image: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: static}}\nspec:\n  \
         terminationGracePeriodSeconds: 1\n  containers:\n  \
         - {{name: main, image: {image:?}, imagePullPolicy: IfNotPresent, \
         command: [sh, -c, 'trap \"exit 0\" TERM; echo hello; while :; do sleep 0.1; done']}}\n"
    )
}

#[test]
fn a_static_pod_is_shown_to_the_cluster_and_runs_whatever_becomes_of_that() {
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
