//! In-place resizes: they are reported as infeasible, and the pod keeps the resources
//! that it was made with (kubelet: `handlePodResourcesResize`, on a node that refuses each).

use rubelet_api::quantity::Quantity;
use serde::Serialize;
use serde_json::{Value, json};

/// The message of the condition and of the event.
pub(super) const MESSAGE: &str = "in-place resize is not supported by this node; the pod keeps its \
                                  resources until it is recreated";

const LISTS: [(&str, &str); 2] = [
    ("initContainers", "initContainerStatuses"),
    ("containers", "containerStatuses"),
];
const KINDS: [&str; 2] = ["limits", "requests"];

/// Replaces a pod's requests with the allocated resources; returns the event's message if they
/// differ. The allocated ones are those of `known`, an earlier version of the same pod, else those
/// that the node has written to the status: the pod's resources before the agent started.
pub(super) fn hold(pod: &mut Value, known: Option<&Value>) -> Option<String> {
    let wanted = summary(pod);
    let mut differs = false;
    for (containers, statuses) in LISTS {
        let statuses = pod["status"][statuses].as_array().cloned();
        let wanted = pod
            .get_mut("spec")
            .and_then(|spec| spec.get_mut(containers));
        let Some(wanted) = wanted.and_then(Value::as_array_mut) else {
            continue;
        };
        for container in wanted {
            let same = |one: &&Value| one["name"] == container["name"];
            let allocated = match known {
                Some(known) => items(&known["spec"][containers])
                    .iter()
                    .find(same)
                    .map(of_specification),
                None => statuses.iter().flatten().find(same).and_then(of_status),
            };
            if let Some(allocated) = allocated {
                differs |= replace(container, allocated);
            }
        }
    }
    // Nothing on the node but its copy of the pod says what the pod has itself.
    if let (Some(known), Some(spec)) = (known, pod.get_mut("spec")) {
        differs |= replace(spec, of_specification(&known["spec"]));
    }
    differs.then(|| format!("Pod resize Infeasible: {wanted}"))
}

/// A pod's requests, in the form and order of upstream's events.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    init_containers: Vec<ContainerSummary<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    containers: Vec<ContainerSummary<'a>>,
    generation: i64,
    error: &'static str,
}

#[derive(Serialize)]
struct ContainerSummary<'a> {
    name: &'a Value,
    resources: Value,
}

fn summary(pod: &Value) -> String {
    let [init_containers, containers] = LISTS.map(|(containers, _)| {
        let list = items(&pod["spec"][containers]).iter();
        let summaries = list.map(|one| ContainerSummary {
            name: &one["name"],
            resources: match &one["resources"] {
                Value::Null => json!({}),
                resources => resources.clone(),
            },
        });
        summaries.collect()
    });
    let summary = Summary {
        init_containers,
        containers,
        generation: pod["metadata"]["generation"].as_i64().unwrap_or(0),
        error: MESSAGE,
    };
    // Of texts and numbers alone: it can always be written.
    serde_json::to_string(&summary).unwrap_or_default()
}

fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

/// Of a container, or of a whole pod.
fn of_specification(owner: &Value) -> [Value; 2] {
    KINDS.map(|kind| owner["resources"][kind].clone())
}

/// `None` where the runtime has not made the container.
fn of_status(status: &Value) -> Option<[Value; 2]> {
    let resources = status["resources"].as_object()?;
    let limits = resources.get("limits").cloned().unwrap_or_default();
    Some([limits, status["allocatedResources"].clone()])
}

fn replace(owner: &mut Value, allocated: [Value; 2]) -> bool {
    let mut differs = false;
    for (kind, allocated) in KINDS.into_iter().zip(allocated) {
        if same(&owner["resources"][kind], &allocated) {
            continue;
        }
        differs = true;
        if !owner["resources"].is_object() {
            owner["resources"] = json!({});
        }
        owner["resources"][kind] = allocated;
    }
    differs
}

/// Whether both have the same amounts, however they are written.
fn same(one: &Value, other: &Value) -> bool {
    let empty = serde_json::Map::new();
    let [one, other] = [one, other].map(|amounts| amounts.as_object().unwrap_or(&empty));
    let amount = |text: &Value| {
        let parsed = Quantity::parse(text.as_str().unwrap_or_default());
        parsed.map_err(|_| text.to_string())
    };
    one.len() == other.len()
        && one.iter().all(|(name, one)| {
            let other = other.get(name);
            other.is_some_and(|other| amount(one) == amount(other))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(resources: &Value, status: &Value) -> Value {
        json!({
            "metadata": {"generation": 2},
            "spec": {"containers": [{"name": "a", "resources": resources}, {"name": "b"}]},
            "status": {"containerStatuses": [status]},
        })
    }

    #[test]
    fn a_pod_keeps_what_the_status_says_that_it_has() {
        let small =
            json!({"limits": {"memory": "64Mi"}, "requests": {"cpu": "100m", "memory": "64Mi"}});
        let large =
            json!({"limits": {"memory": "1Gi"}, "requests": {"cpu": "2", "memory": "64Mi"}});
        let written = json!({
            "name": "a",
            "resources": {"limits": {"memory": "67108864"}},
            "allocatedResources": {"cpu": "0.1", "memory": "64Mi"},
        });
        let mut same = pod(&small, &written);
        assert_eq!(hold(&mut same, None), None);
        assert_eq!(same, pod(&small, &written));
        let mut resized = pod(&large, &written);
        let event = hold(&mut resized, None).unwrap();
        let expected = format!(
            "Pod resize Infeasible: {{\"containers\":[{{\"name\":\"a\",\"resources\":{large}}},\
             {{\"name\":\"b\",\"resources\":{{}}}}],\"generation\":2,\"error\":\"{MESSAGE}\"}}"
        );
        assert_eq!(event, expected);
        let resources = &resized["spec"]["containers"][0]["resources"];
        assert_eq!(resources["limits"], json!({"memory": "67108864"}));
        assert_eq!(
            resources["requests"],
            json!({"cpu": "0.1", "memory": "64Mi"})
        );
        // The runtime has not made it: nothing was allocated.
        for status in [
            json!(null),
            json!({"name": "a"}),
            json!({"name": "b", "resources": {}}),
        ] {
            let mut waiting = pod(&large, &status);
            assert_eq!(hold(&mut waiting, None), None, "{status}");
        }
        // A container had none and gets some.
        let mut first = pod(&large, &json!({"name": "a", "resources": {}}));
        assert!(hold(&mut first, None).is_some());
        assert_eq!(
            first["spec"]["containers"][0]["resources"],
            json!({"limits": null, "requests": null})
        );
    }

    #[test]
    fn what_this_agent_has_taken_in_counts_more_than_the_status() {
        let small = json!({"requests": {"cpu": "100m"}});
        let large = json!({"requests": {"cpu": "200m"}});
        let known = pod(&small, &json!(null));
        let mut resized = pod(
            &large,
            &json!({"name": "a", "resources": {}, "allocatedResources": {"cpu": "200m"}}),
        );
        assert!(hold(&mut resized, Some(&known)).is_some());
        assert_eq!(resized["spec"]["containers"][0]["resources"], small);
    }

    #[test]
    fn a_pod_keeps_what_it_has_itself() {
        let with = |own: &Value| json!({"spec": {"resources": own, "containers": [{"name": "a"}]}});
        let small = json!({"limits": {"cpu": "1"}, "requests": {"cpu": "1"}});
        let known = with(&small);
        let mut same = with(&json!({"limits": {"cpu": "1000m"}, "requests": {"cpu": "1"}}));
        assert_eq!(hold(&mut same, Some(&known)), None);
        let mut resized = with(&json!({"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}));
        assert!(hold(&mut resized, Some(&known)).is_some());
        assert_eq!(resized["spec"]["resources"], small);
    }
}
