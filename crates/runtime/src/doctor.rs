//! Checks whether this machine can run pods. Each finding has its impact and a remedy.
//!
//! The checks change nothing. They read below a root directory, which is `/` except in tests.
//! Features that must be tried out are tried in a separate namespace.

mod devices;
mod kernel;
mod leftovers;
mod privileges;
mod registries;
mod space;

use std::path::Path;

use rubelet_host::machine::Machine;

use crate::RuntimeSettings;

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Information; no problem.
    Note,
    /// Some pods will not run, or leftovers exist.
    Warning,
    /// No pod will run.
    Error,
}

/// One finding about the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Its severity.
    pub severity: Severity,
    /// The problem.
    pub what: String,
    /// Its impact.
    pub why: String,
    /// The remedy.
    pub remedy: String,
}

impl Finding {
    fn new(
        severity: Severity,
        what: impl Into<String>,
        why: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            severity,
            what: what.into(),
            why: why.into(),
            remedy: remedy.into(),
        }
    }
}

/// Checks the machine and the runtime's directories; the worst findings come first. Blocks for some
/// milliseconds. A runtime that uses the same directories is not disturbed.
#[must_use]
pub fn check(settings: &RuntimeSettings) -> Vec<Finding> {
    let mut findings = check_below(Path::new("/"), settings);
    findings.extend(kernel::sender_rules(rubelet_cni::missing_sender_rules()));
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

fn check_below(root: &Path, settings: &RuntimeSettings) -> Vec<Finding> {
    let release = Machine::read(root).map(|machine| machine.kernel_version);
    let mut findings = Vec::new();
    findings.extend(kernel::release(&release.unwrap_or_default()));
    findings.extend(kernel::file_systems(root));
    findings.extend(kernel::cgroups(&root.join("sys/fs/cgroup")));
    findings.extend(kernel::cgroup_driver(root, settings.cgroup_driver));
    findings.extend(kernel::namespaces(root));
    findings.extend(kernel::network(root));
    findings.extend(kernel::security_modules(root));
    findings.extend(privileges::capabilities(root));
    findings.extend(privileges::handlers(settings));
    findings.extend(devices::specifications(settings));
    findings.extend(registries::directories(settings));
    findings.extend(space::directories(settings));
    findings.extend(leftovers::find(settings));
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}
