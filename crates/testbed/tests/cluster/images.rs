//! Images in the node's status.

use rubelet_testbed::{Agent, images};
use serde_json::Value;

use crate::joined::{Joined, WAITS, condition, pod};
use crate::outside::TIMEOUT;

/// A name that does not exist before.
const LATER: &str = "localhost/rubelet/later:1";

#[test]
fn images_without_a_name_are_not_in_the_node_status() {
    let mut joined = Joined::start("worker");
    joined.create(&pod("web", WAITS));
    joined.wait_ready("web");
    images::load_one(&joined.runtime, "", "nameless").unwrap();
    images::load_one(&joined.runtime, LATER, "later").unwrap();
    let nameless = |_: &Agent| Ok((joined.truth.images_without_name()? > 0).then_some(()));
    joined
        .agent
        .wait_for("an image without a name", TIMEOUT, nameless)
        .unwrap();

    // The first status after a start lists all images; the next start parses it.
    for how in ["killed", "asked to end"] {
        let before = renewed(&joined);
        match how {
            "killed" => joined.agent.kill9().unwrap(),
            _ => drop(joined.agent.terminate().unwrap()),
        }
        joined.agent.start().unwrap();
        let node = joined.wait_object(("nodes", "", "worker"), how, |node| {
            let listed = node["status"]["images"].as_array();
            let mut listed = listed.into_iter().flatten();
            listed.any(|image| names(image).iter().any(|name| name == LATER))
        });
        assert_eq!(condition(&node, "Ready"), "True", "{how}: {node}");
        for image in node["status"]["images"].as_array().unwrap() {
            assert!(!names(image).is_empty(), "{how}: {image}");
        }
        joined.wait_object(("leases", "kube-node-lease", "worker"), how, |lease| {
            lease["spec"]["renewTime"] != before
        });
    }
    assert!(joined.truth.images_without_name().unwrap() > 0);
    joined.cluster.no_violations().unwrap();
}

fn names(image: &Value) -> &[Value] {
    image["names"].as_array().map_or(&[], Vec::as_slice)
}

/// Time of the last renewal of the node's lease.
fn renewed(joined: &Joined) -> Value {
    let api = joined.cluster.api();
    let lease = api.get("leases", "kube-node-lease", "worker").unwrap();
    lease.unwrap()["spec"]["renewTime"].clone()
}
