//! Files in which vendors describe their devices.

use super::{Finding, Severity};
use crate::{RuntimeSettings, cdi};

/// Files that can't be used, and devices that nobody can tell apart.
pub(super) fn specifications(settings: &RuntimeSettings) -> Vec<Finding> {
    let faults = cdi::faults(&settings.cdi_spec_dirs).into_iter();
    faults
        .map(|fault| {
            Finding::new(
                Severity::Warning,
                format!("a CDI specification can't be used: {fault}"),
                "containers that ask for these devices are refused",
                "correct the file or remove it; the vendor's tool makes it anew",
            )
        })
        .collect()
}
