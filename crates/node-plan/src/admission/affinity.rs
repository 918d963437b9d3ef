//! Node selector and node affinity.

use rubelet_api::{
    pod::Pod,
    scheduling::{NodeOperator, NodeRequirement, NodeSelectorTerm},
};

use super::AdmissionNode;
use crate::node_status::object::Texts;

/// True if the node has all labels of the selector and matches one term of the affinity.
pub(super) fn matches(pod: &Pod, node: &AdmissionNode) -> bool {
    let selector = &pod.spec.node_selector;
    let selected = selector
        .iter()
        .all(|(name, value)| node.labels.get(name) == Some(value));
    let affinity = pod.spec.node_affinity.as_ref();
    selected
        && affinity.is_none_or(|affinity| affinity.required.iter().any(|term| holds(term, node)))
}

fn holds(term: &NodeSelectorTerm, node: &AdmissionNode) -> bool {
    if term.expressions.is_empty() && term.fields.is_empty() {
        return false;
    }
    let labels = |one: &NodeRequirement| label_holds(one, &node.labels);
    let fields = |one: &NodeRequirement| field_holds(one, &node.name);
    term.expressions.iter().all(labels) && term.fields.iter().all(fields)
}

fn label_holds(requirement: &NodeRequirement, labels: &Texts) -> bool {
    let label = labels.get(&requirement.key);
    let listed = || label.is_some_and(|value| requirement.values.contains(value));
    let number = || match requirement.values.as_slice() {
        [only] => only.parse::<i64>().ok(),
        _ => None,
    };
    let compared = |holds: fn(i64, i64) -> bool| {
        let own = label.and_then(|value| value.parse::<i64>().ok());
        own.zip(number())
            .is_some_and(|(own, bound)| holds(own, bound))
    };
    match requirement.operator {
        NodeOperator::In => listed(),
        NodeOperator::NotIn => !listed(),
        NodeOperator::Exists => label.is_some(),
        NodeOperator::DoesNotExist => label.is_none(),
        NodeOperator::Gt => compared(|own, bound| own > bound),
        NodeOperator::Lt => compared(|own, bound| own < bound),
        NodeOperator::Other(_) => false,
    }
}

/// Fields are compared with exactly one value. `metadata.name` is the only field; any other one is
/// empty.
fn field_holds(requirement: &NodeRequirement, node_name: &str) -> bool {
    let field = match &*requirement.key {
        "metadata.name" => node_name,
        _ => "",
    };
    let [value] = requirement.values.as_slice() else {
        return false;
    };
    match requirement.operator {
        NodeOperator::In => field == &**value,
        NodeOperator::NotIn => field != &**value,
        _ => false,
    }
}
