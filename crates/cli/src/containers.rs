//! The containers of a pod, and which of them a command applies to.

use anyhow::anyhow;
use serde_json::Value;

use super::{failure::CommandError, target::name_of, terminal::Terminal};

/// The annotation that names the default container.
const DEFAULT: &str = "kubectl.kubernetes.io/default-container";

/// The names in a list of containers, such as `initContainers`.
pub(super) fn names(pod: &Value, list: &str) -> Vec<String> {
    let entries = pod["spec"][list].as_array();
    let entries = entries.map(Vec::as_slice).unwrap_or_default();
    let names = entries.iter().filter_map(|entry| entry["name"].as_str());
    names.map(str::to_owned).collect()
}

/// All containers, in start order.
pub(super) fn all(pod: &Value) -> Vec<String> {
    ["initContainers", "containers", "ephemeralContainers"]
        .into_iter()
        .flat_map(|list| names(pod, list))
        .collect()
}

/// The definition of a container of any kind.
pub(super) fn definition<'a>(pod: &'a Value, name: &str) -> Option<&'a Value> {
    find(&pod["spec"], SPEC_LISTS, name)
}

/// The status of a container of any kind.
pub(super) fn status<'a>(pod: &'a Value, name: &str) -> Option<&'a Value> {
    find(&pod["status"], STATUS_LISTS, name)
}

const SPEC_LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];
const STATUS_LISTS: [&str; 3] = [
    "initContainerStatuses",
    "containerStatuses",
    "ephemeralContainerStatuses",
];

fn find<'a>(part: &'a Value, lists: [&str; 3], name: &str) -> Option<&'a Value> {
    let lists = lists.into_iter().filter_map(|list| part[list].as_array());
    lists.flatten().find(|one| one["name"] == name)
}

/// The named container, or the default one.
pub(super) fn choose(
    pod: &Value,
    named: Option<&str>,
    quiet: bool,
    terminal: &mut Terminal<'_>,
) -> Result<String, CommandError> {
    let Some(named) = named else {
        return Ok(by_default(pod, quiet, terminal));
    };
    if definition(pod, named).is_none() {
        let (pod, known) = (name_of(pod), described(pod).join(", "));
        return Err(anyhow!("container {named} not found in pod {pod}; it has {known}").into());
    }
    Ok(named.to_owned())
}

/// The default container; prints a note if the pod has several.
pub(super) fn by_default(pod: &Value, quiet: bool, terminal: &mut Terminal<'_>) -> String {
    let annotated = pod["metadata"]["annotations"][DEFAULT].as_str();
    let annotated = annotated.filter(|name| definition(pod, name).is_some());
    let regular = names(pod, "containers");
    let chosen = annotated
        .or(regular.first().map(String::as_str))
        .unwrap_or_default()
        .to_owned();
    let all = described(pod);
    if all.len() > 1 && !quiet {
        let all = all.join(", ");
        terminal.note(&format!("Defaulted container {chosen:?} out of: {all}"));
    }
    chosen
}

/// All containers as kubectl lists them.
fn described(pod: &Value) -> Vec<String> {
    let init = names(pod, "initContainers").into_iter();
    let ephemeral = names(pod, "ephemeralContainers").into_iter();
    names(pod, "containers")
        .into_iter()
        .chain(ephemeral.map(|name| format!("{name} (ephem)")))
        .chain(init.map(|name| format!("{name} (init)")))
        .collect()
}
