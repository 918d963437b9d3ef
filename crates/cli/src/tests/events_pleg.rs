//! `rubelet events pleg`.

use rubelet_server::Resource;
use serde_json::{Value, json};

use super::fixture::{TestAgent, pod};

fn lifecycle(number: u32, namespace: &str, pod: &str, sync: Option<f64>) -> Value {
    let mut event = json!({
        "metadata": { "name": format!("{number:012}"), "namespace": namespace },
        "time": format!("2026-03-01T12:00:{number:02}.250000Z"),
        "pod": { "name": pod, "uid": format!("uid-{pod}") },
        "container": "main",
        "id": "c0ffee",
        "type": "ContainerDied",
        "cause": "event STOPPED",
        "afterChangeSeconds": 0.004,
        "afterEventSeconds": 0.001,
    });
    if let Some(sync) = sync {
        event["toStartSeconds"] = 0.0005.into();
        event["toSyncSeconds"] = sync.into();
    }
    event
}

fn agent() -> TestAgent {
    let agent = TestAgent::start();
    let put = |event| agent.node.put(Resource::LifecycleEvents, event);
    agent
        .node
        .put(Resource::Pods, pod("default", "web-n1", "web"));
    put(lifecycle(1, "default", "web-n1", Some(0.25)));
    put(lifecycle(2, "a-system", "dns-n1", None));
    put(lifecycle(3, "default", "gone-n1", None));
    agent
}

#[test]
fn they_are_printed_in_their_order_with_their_latencies() {
    let agent = agent();
    assert_eq!(
        agent.type_in("events pleg -A").data(),
        "\
NAMESPACE   TIME                       POD       CONTAINER   EVENT           CAUSE           AFTER   SYNC
default     2026-03-01T12:00:01.250Z   web-n1    main        ContainerDied   event STOPPED   4.0ms   250ms
a-system    2026-03-01T12:00:02.250Z   dns-n1    main        ContainerDied   event STOPPED   4.0ms   -
default     2026-03-01T12:00:03.250Z   gone-n1   main        ContainerDied   event STOPPED   4.0ms   -
"
    );
    let wide = agent
        .type_in("events pleg -o wide --no-headers --for web")
        .data();
    let cells: Vec<&str> = wide.split("   ").map(str::trim).collect();
    assert_eq!(
        cells[4..],
        [
            "event STOPPED",
            "4.0ms",
            "1.0ms",
            "0.5ms",
            "250ms",
            "c0ffee",
            "000000000001"
        ]
    );
    let documents = agent.type_in("events pleg -o json -n a-system").data();
    let documents: Value = serde_json::from_str(&documents).unwrap();
    assert_eq!(documents["items"][0]["kind"], "PodLifecycleEvent");
    let one = agent.type_in("events pleg --for gone-n1 -o yaml").data();
    assert!(one.contains("type: ContainerDied"), "{one}");
    let nothing = agent.type_in("events pleg --for never");
    assert_eq!(
        (nothing.code, nothing.out.as_str(), nothing.err.as_str()),
        (0, "", "No events found in namespace \"default\".\n")
    );
}

#[test]
fn each_is_followed_until_its_pod_was_synchronised() {
    let agent = agent();
    let put = |event| agent.node.put(Resource::LifecycleEvents, event);
    let watch = agent.follow("events pleg -w --no-headers");
    assert!(watch.screen.take_lines(1)[0].ends_with("250ms"));
    put(lifecycle(4, "default", "web-n1", None));
    put(lifecycle(5, "default", "db-n1", None));
    put(lifecycle(5, "default", "db-n1", Some(0.002)));
    put(lifecycle(4, "default", "web-n1", Some(0.003)));
    let rows = watch.screen.take_lines(2);
    assert!(
        rows[0].contains(" db-n1 ") && rows[0].ends_with("2.0ms"),
        "{rows:?}"
    );
    assert!(
        rows[1].contains(" web-n1 ") && rows[1].ends_with("3.0ms"),
        "{rows:?}"
    );
    watch.screen.close();
    put(lifecycle(6, "default", "db-n1", Some(0.002)));
    let ended = watch.thread.join().unwrap();
    assert_eq!((ended.code, ended.err.as_str()), (0, ""));
}

#[test]
fn what_can_not_be_meant_is_one_clear_error() {
    let agent = agent();
    for (command, why) in [
        ("events plog", "unrecognized subcommand 'plog'"),
        (
            "events -w pleg",
            "the subcommand 'pleg' cannot be used with '--watch'",
        ),
        ("events pleg --for event/x", "event/x"),
        ("events pleg -A -n x", "cannot be used with"),
        ("events pleg -o table", "invalid value 'table'"),
        ("events pleg extra", "unexpected argument 'extra'"),
    ] {
        let error = agent.type_in(command).error(2);
        assert!(error.contains(why), "{command}: {error}");
        assert_eq!(error.matches("error: ").count(), 1, "{error}");
    }
}

#[test]
fn shells_complete_it() {
    let script = agent().type_in("completion bash").data();
    assert!(script.contains("events__subcmd__pleg"), "{script}");
}
