//! Leases. Source of checks and texts: upstream's `ValidateLeaseSpec`.

use serde_json::Value;

use crate::{Kind, StatusError, meta, status_error::FieldError};

/// Refuses invalid numbers.
pub(super) fn check(kind: &Kind, lease: &Value) -> Result<(), StatusError> {
    let mut causes = Vec::new();
    for (field, least, why) in [
        ("leaseDurationSeconds", 1, "must be greater than 0"),
        ("leaseTransitions", 0, "must be greater than or equal to 0"),
    ] {
        let found = meta::number(lease, &format!("/spec/{field}"));
        if let Some(found) = found.filter(|found| *found < least) {
            causes.push(FieldError::invalid(
                format!("spec.{field}"),
                &found.into(),
                why,
            ));
        }
    }
    match causes.is_empty() {
        true => Ok(()),
        false => Err(StatusError::invalid(kind, meta::name(lease), causes)),
    }
}
