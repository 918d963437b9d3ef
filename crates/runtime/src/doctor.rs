//! What is wrong with this machine for running pods, each with why it matters and what to do.
//!
//! Nothing is changed. Everything is read below a root folder, which is `/` except in tests; what only
//! the kernel itself can tell is tried where nobody else sees it.

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

/// One thing that a person should know.
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

/// Looks at the machine and at the runtime's folders; the worst findings first. Blocks for some
/// milliseconds. A runtime that works on the same folders is not disturbed.
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
    findings.extend(registries::folders(settings));
    findings.extend(space::folders(settings));
    findings.extend(leftovers::find(settings));
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}
