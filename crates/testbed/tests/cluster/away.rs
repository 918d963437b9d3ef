//! The API server is unreachable, restarts, or has no Node object any more.

use crate::joined::{Joined, WAITS, condition, pod, restarts};
use crate::outside::TIMEOUT;

#[test]
fn pods_run_and_statuses_are_kept_without_the_api_server() {
    let mut joined = Joined::start("worker");
    joined.create(&pod("web", WAITS));
    joined.create(&pod("doomed", WAITS));
    joined.wait_ready("web");
    joined.wait_ready("doomed");
    joined.cluster.api().set_down(true).unwrap();

    // Meanwhile a container exits, and the agent is killed and started again.
    let container = joined.truth.running("doomed", "main").unwrap().unwrap();
    let pid = joined.truth.pid(&container.id).unwrap();
    rubelet_testbed::cleanup::processes::kill(pid).unwrap();
    let again = |_: &rubelet_testbed::Agent| {
        let now = joined.truth.running("doomed", "main")?;
        Ok(now.filter(|now| now.id != container.id).map(drop))
    };
    joined
        .agent
        .wait_for("the container is started again", TIMEOUT, again)
        .unwrap();
    let before = joined.truth.running("web", "main").unwrap().unwrap().id;
    joined.agent.kill9().unwrap();
    joined.agent.start().unwrap();
    let unconfirmed = |agent: &rubelet_testbed::Agent| {
        let pods = agent.pods()?;
        let marked = |pod: &serde_json::Value| {
            pod["metadata"]["annotations"]["rubelet.dev/unconfirmed"] == "true"
        };
        Ok((pods.iter().filter(|pod| marked(pod)).count() == 2).then_some(()))
    };
    joined
        .agent
        .wait_for("the pods as they were known last", TIMEOUT, unconfirmed)
        .unwrap();

    joined.cluster.api().set_down(false).unwrap();
    let seen = joined.wait_pod("doomed", "its restart is known", |pod| restarts(pod) == 1);
    assert_eq!(seen["status"]["phase"], "Running");
    joined.agent.wait_ready(TIMEOUT).unwrap();
    let after = joined.truth.running("web", "main").unwrap().unwrap().id;
    assert_eq!(
        after, before,
        "nothing restarts because the API server was away"
    );
    for name in ["web", "doomed"] {
        joined
            .kubectl
            .stdout(&["delete", "pod", name, "--timeout=60s"]);
    }
    joined.wait_empty();
    joined.cluster.no_violations().unwrap();
}

#[test]
fn an_api_server_restart_and_node_deletion_are_survived() {
    let mut joined = Joined::start("worker");
    joined.create(&pod("web", WAITS));
    joined.wait_ready("web");
    let before = joined.truth.running("web", "main").unwrap().unwrap().id;
    joined.cluster.api().restart().unwrap();
    joined.create(&pod("later", WAITS));
    joined.wait_ready("later");

    let uid = |joined: &Joined| {
        let node = joined.cluster.api().get("nodes", "", "worker").unwrap();
        node.map(|node| node["metadata"]["uid"].clone())
    };
    let first = uid(&joined);
    joined.kubectl.stdout(&["delete", "node", "worker"]);
    let told = |agent: &rubelet_testbed::Agent| {
        let status = agent.cli(&["status"])?;
        Ok(status
            .stdout
            .contains("a restart of the agent registers it again")
            .then_some(()))
    };
    joined.agent.wait_for("it tells", TIMEOUT, told).unwrap();
    assert!(uid(&joined).is_none(), "who deletes a node wants it gone");
    joined.agent.terminate().unwrap();
    joined.agent.start().unwrap();
    joined.wait_object(("nodes", "", "worker"), "registered again", |node| {
        Some(&node["metadata"]["uid"]) != first.as_ref() && condition(node, "Ready") == "True"
    });
    let after = joined.truth.running("web", "main").unwrap().unwrap().id;
    assert_eq!(after, before);
    joined.cluster.no_violations().unwrap();
}

#[test]
fn after_a_reboot_without_the_api_server_known_pods_start() {
    let mut joined = Joined::start("worker");
    joined.create(&pod("web", WAITS));
    let mut job = pod("job", "true");
    job["spec"]["restartPolicy"] = "Never".into();
    joined.create(&job);
    joined.wait_ready("web");
    joined.wait_pod("job", "done", |pod| pod["status"]["phase"] == "Succeeded");
    let before = joined.truth.running("web", "main").unwrap().unwrap().id;

    joined.cluster.api().set_down(true).unwrap();
    joined.agent.terminate().unwrap();
    joined.lose_all_sandboxes();
    joined.agent.start().unwrap();
    let again = |_: &rubelet_testbed::Agent| joined.truth.running("web", "main");
    let after = joined
        .agent
        .wait_for("the pod starts without the API server", TIMEOUT, again)
        .unwrap();
    assert_ne!(after.id, before);
    let all = joined.truth.containers().unwrap();
    assert!(
        all.iter().all(|container| container.pod != "job"),
        "a job that is done stays done: {all:?}"
    );

    joined.cluster.api().set_down(false).unwrap();
    joined.wait_ready("web");
    let now = joined.truth.running("web", "main").unwrap().unwrap().id;
    assert_eq!(now, after.id, "it is not started once more");
    joined.cluster.no_violations().unwrap();
}

#[test]
fn pods_of_a_former_node_name_are_not_started() {
    let mut joined = Joined::start("former");
    joined.create(&pod("web", WAITS));
    joined.wait_ready("web");
    joined.agent.terminate().unwrap();
    joined.lose_all_sandboxes();

    joined.cluster.api().set_down(true).unwrap();
    joined.agent.rename_node("latter");
    joined.agent.start().unwrap();
    let told = "Ignoring a stored pod of another node";
    let log = joined.agent.log_path();
    let told = |_: &rubelet_testbed::Agent| {
        let log = std::fs::read_to_string(&log)?;
        Ok(log.contains(told).then_some(()))
    };
    joined
        .agent
        .wait_for("the log says that the pod is another node's", TIMEOUT, told)
        .unwrap();
    assert_eq!(joined.truth.running("web", "main").unwrap(), None);
}

#[test]
fn no_value_of_a_secret_is_on_disk_in_plain_text() {
    use std::os::unix::fs::MetadataExt as _;
    const VALUE: &str = "a-value-that-is-nowhere-else";
    const ENCODED: &str = "YS12YWx1ZS10aGF0LWlzLW5vd2hlcmUtZWxzZQ==";

    let mut joined = Joined::start("worker");
    let secret = serde_json::json!({
        "metadata": { "name": "hidden", "namespace": "default" },
        "type": "Opaque",
        "data": { "k": ENCODED },
    });
    joined.cluster.api().create("secrets", &secret).unwrap();
    let script = format!("test \"$(wc -c < /s/k)\" = {} && {WAITS}", VALUE.len());
    let mut vault = pod("vault", &script);
    vault["spec"]["volumes"] =
        serde_json::json!([{ "name": "s", "secret": { "secretName": "hidden" } }]);
    vault["spec"]["containers"][0]["volumeMounts"] =
        serde_json::json!([{ "name": "s", "mountPath": "/s" }]);
    joined.create(&vault);
    joined.wait_ready("vault");
    let before = joined.truth.running("vault", "main").unwrap().unwrap().id;

    let root = joined.agent.root_dir();
    let device = std::fs::metadata(&root).unwrap().dev();
    let mut directories = vec![root];
    let mut seen = 0;
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let found = std::fs::symlink_metadata(&path).unwrap();
            // What is mounted there is in memory.
            if found.is_dir() && found.dev() == device {
                directories.push(path);
            } else if found.is_file() {
                seen += 1;
                let text = std::fs::read(&path).unwrap();
                let text = String::from_utf8_lossy(&text);
                let leaks = text.contains(VALUE) || text.contains(ENCODED);
                assert!(!leaks, "{}: {text}", path.display());
            }
        }
    }
    assert!(seen > 3, "the records are there: {seen}");

    joined.cluster.api().set_down(true).unwrap();
    joined.agent.terminate().unwrap();
    joined.lose_all_sandboxes();
    joined.agent.start().unwrap();
    let again = |_: &rubelet_testbed::Agent| joined.truth.running("vault", "main");
    let after = joined
        .agent
        .wait_for("the pod starts with its secret", TIMEOUT, again)
        .unwrap();
    assert_ne!(after.id, before);
}
