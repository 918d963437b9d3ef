//! Tests of `gates`.

use super::{FeatureGates, Gate, GateError, GateOwner, Stage};
use std::collections::BTreeMap;

fn gates(entries: &[(&str, bool)]) -> Result<FeatureGates, (String, GateError)> {
    let map: BTreeMap<String, bool> = entries
        .iter()
        .map(|&(name, value)| (name.to_owned(), value))
        .collect();
    FeatureGates::from_map(&map)
}

#[test]
fn the_table_is_sorted_so_that_names_are_found() {
    assert!(Gate::all().is_sorted_by(|a, b| a.name < b.name));
    assert_eq!(Gate::find("NodeSwap").unwrap().stage, Stage::Stable);
    assert_eq!(
        Gate::find("GangScheduling").unwrap().whose,
        GateOwner::Other
    );
    for name in super::CHECKS.iter().chain(&super::SWITCHES) {
        assert!(Gate::find(name).is_some(), "{name}");
    }
}

#[test]
fn a_gate_is_what_it_was_set_to_else_its_default() {
    let gates = gates(&[("MemoryQoS", true), ("KubeletCrashLoopBackOffMax", false)]).unwrap();
    assert!(gates.enabled("MemoryQoS"));
    assert!(!gates.enabled("KubeletCrashLoopBackOffMax"));
    assert!(gates.enabled("GracefulNodeShutdown"));
    assert!(gates.enabled("EventedPLEG"), "not as upstream");
    assert!(!gates.enabled("CPUManagerPolicyAlphaOptions"));
    assert!(!gates.enabled("NoSuchGate"));
}

#[test]
fn a_stage_is_set_as_a_whole_except_what_is_named() {
    let gates = gates(&[
        ("AllAlpha", true),
        ("EventedPLEG", false),
        ("AllBeta", false),
    ])
    .unwrap();
    assert!(gates.enabled("MemoryQoS"));
    assert!(!gates.enabled("EventedPLEG"));
    assert!(!gates.enabled("GracefulNodeShutdown"));
    assert!(gates.enabled("NodeSwap"));
}

#[test]
fn unknown_and_fixed_gates_are_refused() {
    let message = |name: &str, value| gates(&[(name, value)]).unwrap_err().1.to_string();
    assert_eq!(
        message("GracefulNodeShutdwn", true),
        "unknown feature gate; did you mean \"GracefulNodeShutdown\"?"
    );
    assert_eq!(
        message("Dockershim", true),
        "unknown feature gate; Kubernetes 1.36 has no gate of this name"
    );
    assert_eq!(
        message("NodeSwap", false),
        "can't be false; the feature is fixed to true and the gate about to go"
    );
    assert!(gates(&[("NodeSwap", true), ("GangScheduling", true)]).is_ok());
}
