//! Node affinity, which admission holds against the node.

use k8s_openapi::api::core::v1 as k8s;

use super::values::texts;
use crate::scheduling::{NodeAffinity, NodeOperator, NodeRequirement, NodeSelectorTerm};

/// The required part. Manifests with affinity are refused before.
pub(super) fn required(spec: &k8s::PodSpec) -> Option<NodeAffinity> {
    let affinity = spec.affinity.as_ref()?.node_affinity.as_ref()?;
    let selector = affinity
        .required_during_scheduling_ignored_during_execution
        .as_ref()?;
    Some(NodeAffinity {
        required: selector.node_selector_terms.iter().map(term).collect(),
    })
}

fn term(term: &k8s::NodeSelectorTerm) -> NodeSelectorTerm {
    let list = |list: &Option<Vec<k8s::NodeSelectorRequirement>>| {
        list.iter().flatten().map(requirement).collect()
    };
    NodeSelectorTerm {
        expressions: list(&term.match_expressions),
        fields: list(&term.match_fields),
    }
}

fn requirement(requirement: &k8s::NodeSelectorRequirement) -> NodeRequirement {
    NodeRequirement {
        key: requirement.key.as_str().into(),
        operator: match requirement.operator.as_str() {
            "In" => NodeOperator::In,
            "NotIn" => NodeOperator::NotIn,
            "Exists" => NodeOperator::Exists,
            "DoesNotExist" => NodeOperator::DoesNotExist,
            "Gt" => NodeOperator::Gt,
            "Lt" => NodeOperator::Lt,
            other => NodeOperator::Other(other.into()),
        },
        values: texts(requirement.values.as_ref()),
    }
}
