//! The rows of `rubelet top`, from the summary of the statistics.

use std::cmp::Reverse;

use serde_json::Value;

use super::super::terminal::visible;

/// What pods are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum SortBy {
    /// CPU usage
    Cpu,
    /// Working set
    Memory,
}

/// The text of a number that was not read; kubectl's.
const UNKNOWN: &str = "<unknown>";

/// The heading and the row of the node.
pub(super) fn rows_of_node(node: &Value, headings: bool) -> Vec<Vec<String>> {
    let memory = &node["memory"];
    let used = memory["workingSetBytes"].as_u64();
    let capacity = used
        .zip(memory["availableBytes"].as_u64())
        .map(|(used, available)| used.saturating_add(available));
    let percent = used
        .zip(capacity.filter(|capacity| *capacity > 0))
        .map(|(used, capacity)| u128::from(used) * 100 / u128::from(capacity));
    let name = node["nodeName"].as_str().unwrap_or_default();
    let row = vec![
        visible(name),
        cores(node),
        bytes(node),
        percent.map_or_else(|| UNKNOWN.to_owned(), |percent| format!("{percent}%")),
    ];
    let heading = ["NODE", "CPU(cores)", "MEMORY(bytes)", "MEMORY(%)"].map(str::to_owned);
    let heading = headings.then(|| heading.to_vec());
    heading.into_iter().chain([row]).collect()
}

/// The rows of the pods of a namespace, or of all; in the agent's order, or those that use most
/// first.
pub(super) fn rows_of_pods(
    pods: &[Value],
    namespace: Option<&str>,
    containers: bool,
    sort_by: Option<SortBy>,
) -> Vec<Vec<String>> {
    let is_shown =
        |pod: &&Value| namespace.is_none_or(|namespace| pod["podRef"]["namespace"] == namespace);
    let mut shown: Vec<(&Value, Option<&Value>)> = Vec::new();
    for pod in pods.iter().filter(is_shown) {
        match containers {
            false => shown.push((pod, None)),
            true => {
                let of = pod["containers"].as_array().into_iter().flatten();
                shown.extend(of.map(|container| (pod, Some(container))));
            }
        }
    }
    if let Some(sort_by) = sort_by {
        shown.sort_by_key(|(pod, container)| {
            let usage = container.unwrap_or(pod);
            Reverse(match sort_by {
                SortBy::Cpu => usage["cpu"]["usageNanoCores"].as_u64(),
                SortBy::Memory => usage["memory"]["workingSetBytes"].as_u64(),
            })
        });
    }
    let row = |(pod, container): (&Value, Option<&Value>)| {
        let text = |value: &Value| visible(value.as_str().unwrap_or_default());
        let usage = container.unwrap_or(pod);
        let mut row = Vec::new();
        if namespace.is_none() {
            row.push(text(&pod["podRef"]["namespace"]));
        }
        row.push(text(&pod["podRef"]["name"]));
        row.extend(container.map(|container| text(&container["name"])));
        row.extend([cores(usage), bytes(usage)]);
        row
    };
    shown.into_iter().map(row).collect()
}

/// CPU usage in thousandths of a core, rounded up as kubectl does.
fn cores(usage: &Value) -> String {
    let nanos = usage["cpu"]["usageNanoCores"].as_u64();
    nanos.map_or_else(
        || UNKNOWN.to_owned(),
        |nanos| format!("{}m", nanos.div_ceil(1_000_000)),
    )
}

/// The working set in MiB.
fn bytes(usage: &Value) -> String {
    let bytes = usage["memory"]["workingSetBytes"].as_u64();
    bytes.map_or_else(|| UNKNOWN.to_owned(), |bytes| format!("{}Mi", bytes >> 20))
}
