//! CDI specifications.

use super::{Finding, Severity};
use crate::{RuntimeSettings, cdi};

/// Specifications that can't be used, and devices that two files specify.
pub(super) fn specifications(settings: &RuntimeSettings) -> Vec<Finding> {
    let problems = cdi::problems(&settings.cdi_spec_dirs).into_iter();
    problems
        .map(|error| {
            Finding::new(
                Severity::Warning,
                format!("a CDI specification cannot be used: {error}"),
                "containers that request these devices are refused",
                "correct or remove the file; the vendor's tool can regenerate it",
            )
        })
        .collect()
}
