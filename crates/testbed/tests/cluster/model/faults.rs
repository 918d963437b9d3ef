//! An API server with faults of all kinds.

use sim_api::profile;

use crate::joined::{Joined, WAITS, pod};

const PODS: usize = 12;

#[test]
fn with_a_faulty_api_server_pods_start_once() {
    if !super::applies() {
        return;
    }
    let joined = Joined::start_on_model("worker");
    let model = joined.cluster.api().model().unwrap();
    for rule in profile("rough").unwrap() {
        model.add_fault(rule);
    }
    let names: Vec<String> = (0..PODS).map(|number| format!("p{number}")).collect();
    for name in &names {
        joined.create(&pod(name, WAITS));
    }
    for name in &names {
        joined.wait_ready(name);
    }
    let containers = joined.truth.containers().unwrap();
    assert_eq!(containers.len(), PODS, "each was started once");
    for name in &names {
        let api = joined.cluster.api();
        api.delete("pods", "default", name, Some(2)).unwrap();
    }
    for name in &names {
        joined.wait_gone(name);
    }
    joined.wait_empty();
    model.clear_faults();
    joined.cluster.no_violations().unwrap();
}
