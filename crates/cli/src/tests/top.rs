//! `rubelet top`.

use serde_json::{Value, json};

use super::fixture::TestAgent;

fn usage(name: &str, nano_cores: Option<u64>, bytes: u64) -> Value {
    json!({
        "name": name,
        "cpu": { "usageNanoCores": nano_cores, "usageCoreNanoSeconds": 1 },
        "memory": { "workingSetBytes": bytes },
    })
}

fn pod(namespace: &str, name: &str, nano_cores: Option<u64>, bytes: u64) -> Value {
    let mut pod = usage("", nano_cores, bytes);
    pod["podRef"] = json!({ "name": name, "namespace": namespace, "uid": "u" });
    let second = usage("side\u{1b}[2J", None, 0);
    pod["containers"] = json!([usage("app", nano_cores, bytes), second]);
    pod
}

/// An agent whose first reading has no usage per second.
fn agent() -> TestAgent {
    let agent = TestAgent::start();
    let summary = |nano_cores: Option<u64>| {
        json!({
            "node": {
                "nodeName": "n1",
                "cpu": { "usageNanoCores": nano_cores },
                "memory": { "workingSetBytes": 3_u64 << 30, "availableBytes": 1_u64 << 30 },
            },
            "pods": [
                pod("default", "db-n1", Some(1), 300 << 20),
                pod("default", "web-n1", Some(250_000_001), 20 << 20),
                pod("kube-system", "dns-n1", None, 1 << 20),
            ],
        })
    };
    let mut summaries = agent.node.summaries.lock().unwrap();
    summaries.extend([summary(None), summary(Some(1_500_000_000))]);
    drop(summaries);
    agent
}

#[test]
fn the_node_and_its_pods_are_shown_with_their_usage_per_second() {
    let agent = agent();
    assert_eq!(
        agent.type_in("top").data(),
        "\
NODE   CPU(cores)   MEMORY(bytes)   MEMORY(%)
n1     1500m        3072Mi          75%

POD      CPU(cores)   MEMORY(bytes)
db-n1    1m           300Mi
web-n1   251m         20Mi
"
    );
    assert_eq!(
        agent.type_in("top -A --sort-by cpu --no-headers").data(),
        "\
n1   1500m   3072Mi   75%

default       web-n1   251m        20Mi
default       db-n1    1m          300Mi
kube-system   dns-n1   <unknown>   1Mi
"
    );
    // Names come from manifests: they do not reach the terminal as they are.
    assert_eq!(
        agent
            .type_in("top --containers --sort-by memory -n kube-system")
            .data(),
        "\
NODE   CPU(cores)   MEMORY(bytes)   MEMORY(%)
n1     1500m        3072Mi          75%

POD      CONTAINER   CPU(cores)   MEMORY(bytes)
dns-n1   app         <unknown>    1Mi
dns-n1   side^[[2J   <unknown>    0Mi
"
    );
    assert_eq!(
        agent.type_in("top -n none --no-headers").data(),
        "n1   1500m   3072Mi   75%\n"
    );
}

#[test]
fn the_tables_are_shown_again_until_the_reader_leaves() {
    let agent = agent();
    let following = agent.follow("top -w --interval 1 --no-headers -n none");
    let line = "n1   1500m   3072Mi   75%";
    assert_eq!(following.screen.take_lines(3), [line, "", line]);
    following.screen.close();
    let ended = following.thread.join().unwrap();
    assert_eq!((ended.code, &*ended.err), (0, ""));
}
