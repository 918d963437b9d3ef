//! Whether a pod tolerates a taint.

use rubelet_api::scheduling::{TaintEffect, Toleration, TolerationOperator};

use crate::node_status::object::NodeTaint;

/// Whether one of the tolerations is for this taint. Those that compare numbers are behind an alpha
/// feature gate, which is off: they tolerate nothing.
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
