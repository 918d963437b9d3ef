//! Tests of `conditions`.

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn shown(kind: &str, status: &str, second: i64) -> NodeCondition {
    NodeCondition {
        kind: kind.into(),
        status: status.into(),
        last_transition_time: Some(at(second)),
        last_heartbeat_time: Some(at(second)),
        reason: "Old".into(),
        message: "old words".into(),
    }
}

fn ready(
    list: &mut Vec<NodeCondition>,
    transitions: &mut Transitions,
    problem: Option<&str>,
    second: i64,
) -> (i64, Option<&'static str>) {
    let event = set_ready(list, transitions, problem, at(second));
    let since = list.last().unwrap().last_transition_time.unwrap();
    (since.as_second(), event)
}

#[test]
fn a_status_that_stays_keeps_its_time_and_its_words() {
    let mut list = vec![shown("MemoryPressure", FALSE, 5)];
    let mut transitions = Transitions::default();
    let event = set_pressure(&mut list, &mut transitions, &MEMORY_PRESSURE, false, at(70));
    assert_eq!(event, None);
    assert_eq!(list[0].last_transition_time, Some(at(5)));
    assert_eq!(list[0].last_heartbeat_time, Some(at(70)));
    assert_eq!(&*list[0].reason, "Old");
}

#[test]
fn a_change_has_its_words_its_time_and_one_event() {
    let mut list = vec![shown("DiskPressure", UNKNOWN, 5)];
    let mut transitions = Transitions::default();
    let event = set_pressure(&mut list, &mut transitions, &DISK_PRESSURE, true, at(70));
    assert_eq!(event, Some("NodeHasDiskPressure"));
    let expected = NodeCondition {
        kind: "DiskPressure".into(),
        status: TRUE.into(),
        last_heartbeat_time: Some(at(70)),
        last_transition_time: Some(at(70)),
        reason: "KubeletHasDiskPressure".into(),
        message: "kubelet has disk pressure".into(),
    };
    assert_eq!(list, [expected]);
}

#[test]
fn a_change_that_can_not_be_sent_keeps_the_time_at_which_it_was_made() {
    let mut transitions = Transitions::default();
    let api = vec![shown(READY, TRUE, 5)];
    let mut compute = |problem, second| ready(&mut api.clone(), &mut transitions, problem, second);
    assert_eq!(
        compute(Some("runtime down"), 70),
        (70, Some("NodeNotReady"))
    );
    assert_eq!(compute(Some("runtime down"), 80), (70, None));
    assert_eq!(compute(None, 90), (5, None), "nobody saw it");
    assert_eq!(compute(Some("again"), 95), (95, Some("NodeNotReady")));
}

#[test]
fn a_condition_that_others_changed_meanwhile_changes_again() {
    let mut transitions = Transitions::default();
    let lost = |second| vec![shown(READY, UNKNOWN, second)];
    let mut compute = |mut api: Vec<_>, second| ready(&mut api, &mut transitions, None, second);
    assert_eq!(compute(lost(50), 60), (60, Some("NodeReady")));
    assert_eq!(compute(lost(50), 70), (60, None));
    assert_eq!(compute(lost(75), 80), (80, Some("NodeReady")));
}

#[test]
fn a_node_that_is_ready_from_the_begin_on_has_no_event() {
    let mut list = Vec::new();
    let found = ready(&mut list, &mut Transitions::default(), None, 7);
    assert_eq!(found, (7, None));
    assert_eq!(&*list[0].message, "kubelet is posting ready status");
}
