//! A pod takes all memory.

use rubelet_testbed::memory::available_bytes;
use serde_json::json;

use super::{evicted, relieved, start_modest};
use crate::joined::{Joined, bound, wait_stdout, with_volume};

const MIB: u64 = 1 << 20;
/// Memory that the machine must have, and that other tests leave it.
const NEEDED: u64 = 6144 * MIB;
/// What the greedy pod can take before the threshold is crossed. Other tests use less meanwhile.
const ROOM: u64 = 1536 * MIB;
/// Fills memory with files of 64 MiB, at most 48 of them: 3 GiB.
const GREEDY: &str = "i=0; while [ $i -lt 48 ]; do dd if=/dev/zero of=/data/$i bs=1M count=64; \
                      i=$((i+1)); sleep 0.1; done; sleep 1000";

#[test]
fn the_pod_that_takes_all_memory_is_evicted_and_only_that_one() {
    let available = available_bytes().unwrap();
    if !rubelet_needs::have(available > NEEDED, "6 GiB of free memory") {
        return;
    }
    let threshold = (available - ROOM) / MIB;
    let joined = Joined::start_with("worker", |builder| {
        builder
            .config(
                "evictionHard",
                json!({ "memory.available": format!("{threshold}Mi") }),
            )
            .config("evictionPressureTransitionPeriod", "10s")
    });
    start_modest(&joined);
    let greedy = with_volume(bound("greedy", GREEDY), &json!({ "medium": "Memory" }));
    joined.create(&greedy);

    let ended = evicted(&joined);
    let status = &ended["status"];
    let message = status["message"].as_str().unwrap();
    let expected =
        format!("The node was low on resource: memory. Threshold quantity: {threshold}Mi,");
    assert!(message.starts_with(&expected), "{message}");
    let conditions = status["conditions"].as_array().unwrap();
    let disrupted = conditions
        .iter()
        .find(|condition| condition["type"] == "DisruptionTarget")
        .unwrap();
    assert_eq!(disrupted["reason"], "TerminationByKubelet", "{disrupted}");
    assert_eq!(disrupted["message"], message, "{disrupted}");
    let events = wait_stdout(&joined.kubectl, &["get", "events"], |text| {
        text.contains("Evicted") && text.contains("EvictionThresholdMet")
    });
    assert!(events.contains("Attempting to reclaim memory"), "{events}");
    let starved =
        "jsonpath={.items[?(@.reason==\"Evicted\")].metadata.annotations.starved_resource}";
    let starved = joined.kubectl.stdout(&["get", "events", "-o", starved]);
    assert_eq!(starved, "memory");

    // What it took is free again, and the condition ends after the transition period.
    relieved(&joined, "MemoryPressure", "memory.available");
}
