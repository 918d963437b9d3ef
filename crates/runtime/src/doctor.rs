//! What is wrong with this machine for running pods, each with why it matters and what to do.
//!
//! Nothing is changed. Everything is read below a root directory, which is `/` except in tests.
//! What only a trial shows is tried in a namespace of its own.

mod devices;
mod kernel;
mod leftovers;
mod privileges;
mod registries;
mod space;

use std::path::Path;

use rubelet_host::machine::Machine;

pub(crate) use privileges::is_executable;

use crate::RuntimeSettings;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Something to know; nothing is wrong.
    Note,
    /// Some pods will not work, or something is left over.
    Warning,
    /// No pod will work.
    Error,
}

/// One finding about the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What was found.
    pub what: String,
    /// Why it matters.
    pub why: String,
    /// What to do about it.
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
