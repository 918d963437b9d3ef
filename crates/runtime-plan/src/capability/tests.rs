//! Tests of `capability`.

use super::*;

fn wanted(add: &[&str], drop: &[&str], ambient: &[&str]) -> v1::LinuxContainerSecurityContext {
    let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    v1::LinuxContainerSecurityContext {
        capabilities: Some(v1::Capability {
            add_capabilities: list(add),
            drop_capabilities: list(drop),
            add_ambient_capabilities: list(ambient),
        }),
        ..Default::default()
    }
}

fn granted(add: &[&str], drop: &[&str]) -> CapSet {
    let sets = container(&wanted(add, drop, &[]), CapSet::ALL).unwrap();
    assert_eq!(sets.bounding, sets.effective);
    assert_eq!(sets.bounding, sets.permitted);
    assert!(sets.ambient.is_empty() && sets.inheritable.is_empty());
    CapSet::of(sets.bounding.iter().map(String::as_str))
}

#[test]
fn names_stand_at_the_kernels_numbers() {
    for (name, number) in [
        ("CHOWN", 0),
        ("SYS_ADMIN", 21),
        ("SETFCAP", 31),
        ("CHECKPOINT_RESTORE", 40),
    ] {
        assert_eq!(CapSet::of([name]).bits(), 1 << number);
    }
    assert_eq!(CapSet::of(["cap_kill"]).names(), ["CAP_KILL"]);
    assert_eq!(CapSet::from_bits(u64::MAX), CapSet::ALL);
}

#[test]
fn all_comes_first_and_single_names_after_it() {
    assert_eq!(granted(&[], &[]), CapSet::of(DEFAULT));
    assert_eq!(granted(&[], &["ALL"]), CapSet::EMPTY);
    assert_eq!(granted(&["NET_ADMIN"], &["ALL"]), CapSet::of(["NET_ADMIN"]));
    assert_eq!(
        granted(&["all"], &["CHOWN"]),
        CapSet::ALL.without(CapSet::of(["CHOWN"]))
    );
    assert_eq!(granted(&["ALL"], &["ALL"]), CapSet::EMPTY);
    assert!(!granted(&["NET_ADMIN"], &["NET_ADMIN"]).has("NET_ADMIN"));
    assert_eq!(granted(&[], &["NO_SUCH"]), CapSet::of(DEFAULT));
}

#[test]
fn nobody_gets_more_than_the_agent_has() {
    let available = CapSet::of(["CHOWN", "KILL"]);
    let privileged = v1::LinuxContainerSecurityContext {
        privileged: true,
        ..Default::default()
    };
    let sets = container(&privileged, available).unwrap();
    assert_eq!(sets.bounding, ["CAP_CHOWN", "CAP_KILL"]);
    assert!(container(&wanted(&["SYS_TIME"], &[], &[]), available).is_err());
    assert!(container(&wanted(&["NO_SUCH"], &[], &[]), CapSet::ALL).is_err());
}

#[test]
fn ambient_capabilities_are_in_every_set() {
    let sets = container(&wanted(&[], &["ALL"], &["NET_BIND_SERVICE"]), CapSet::ALL).unwrap();
    for set in [
        &sets.bounding,
        &sets.permitted,
        &sets.effective,
        &sets.inheritable,
        &sets.ambient,
    ] {
        assert_eq!(*set, ["CAP_NET_BIND_SERVICE"]);
    }
}
