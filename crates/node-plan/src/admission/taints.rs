//! Taints and tolerations.

use rubelet_api::scheduling::{TaintEffect, Toleration, TolerationOperator};

use crate::node_status::object::NodeTaint;

/// True if one of the tolerations matches the taint. Numeric comparisons are behind an alpha
/// feature gate, which is off: they match nothing.
pub(super) fn tolerates(tolerations: &[Toleration], taint: &NodeTaint) -> bool {
    tolerations.iter().any(|one| {
        let effect = one
            .effect
            .is_none_or(|effect| TaintEffect::from_name(&taint.effect) == Some(effect));
        let key = one.key.is_empty() || one.key == taint.key;
        let value = match one.operator {
            TolerationOperator::Equal => one.value == taint.value,
            TolerationOperator::Exists => true,
            TolerationOperator::Lt | TolerationOperator::Gt | TolerationOperator::Other(_) => false,
        };
        effect && key && value
    })
}
