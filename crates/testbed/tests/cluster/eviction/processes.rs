//! The machine has few process IDs left.

use serde_json::json;

use super::{evicted, relieved, start_modest};
use crate::joined::{Joined, bound};

/// What the greedy pod can start before the threshold is crossed. Other tests start fewer meanwhile.
const ROOM: u64 = 1500;
const GREEDY: &str = "i=0; while [ $i -lt 2500 ]; do sleep 1000 & i=$((i+1)); done; wait";

/// Process IDs that are free, as the kubelet counts them.
fn available() -> u64 {
    let number = |file: &str| -> u64 {
        let text = std::fs::read_to_string(format!("/proc/sys/kernel/{file}")).unwrap();
        text.trim().parse().unwrap()
    };
    let load = std::fs::read_to_string("/proc/loadavg").unwrap();
    let threads = load.split_whitespace().nth(3).unwrap().split_once('/');
    let used: u64 = threads.unwrap().1.parse().unwrap();
    number("pid_max").min(number("threads-max")) - used
}

#[test]
fn the_pod_that_takes_all_processes_is_evicted_and_only_that_one() {
    let threshold = available() - ROOM;
    let joined = Joined::start_with("worker", |builder| {
        builder
            .config(
                "evictionHard",
                json!({ "pid.available": threshold.to_string() }),
            )
            .config("evictionPressureTransitionPeriod", "5s")
    });
    start_modest(&joined);
    joined.create(&bound("greedy", GREEDY));
    let ended = evicted(&joined);
    let message = ended["status"]["message"].as_str().unwrap();
    let expected = "The node was low on resource: pids. Threshold quantity: ";
    assert!(message.starts_with(expected), "{message}");
    relieved(&joined, "PIDPressure", "pid.available");
}
