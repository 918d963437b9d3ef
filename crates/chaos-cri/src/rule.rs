//! A rule: calls, conditions and a fault.

mod fault;
mod file;
mod parse;

use std::fmt;

pub(crate) use fault::{Fault, Stage};
pub use file::parse_file;
pub use parse::RuleError;
use rubelet_cri::v1::ContainerEventType;

use crate::{
    rpc::{Rpc, glob},
    subject::Subject,
};

/// One rule, such as `ContainerStatus id=3f2a chance=10% delay=2s`. Parsed from its text, and
/// displays as it.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    text: String,
    calls: String,
    pub(crate) select: Select,
    pub(crate) conditions: Conditions,
    pub(crate) fault: Fault,
}

/// The subject that a call or a message must have. `None` matches everything.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Select {
    id: Option<String>,
    pod: Option<String>,
    event: Option<ContainerEventType>,
}

/// Which of the matching calls get the fault.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Conditions {
    /// Probability, in millionths.
    pub(crate) chance: u32,
    /// How many are skipped at first.
    pub(crate) skip: u64,
    /// Only every n-th of the following ones.
    pub(crate) every: u64,
    /// Maximum number of faults.
    pub(crate) times: u64,
}

impl Default for Conditions {
    fn default() -> Self {
        Self {
            chance: 1_000_000,
            skip: 0,
            every: 1,
            times: u64::MAX,
        }
    }
}

impl Rule {
    /// Whether it applies to this RPC, at this stage of a call.
    pub(crate) fn matches_rpc(&self, rpc: &Rpc, stage: Stage) -> bool {
        glob(&self.calls, rpc.name)
            && self.fault.stage(rpc.shape) == Some(stage)
            && (rpc.has_subject || !self.select.names_a_subject())
    }

    /// Whether it applies to this subject. Rules about lists apply to all lists, and select among
    /// the items.
    pub(crate) fn matches(&self, rpc: &Rpc, subject: &Subject) -> bool {
        (rpc.shape.is_list() && self.fault.is_about_items()) || self.select.matches(subject)
    }
}

impl Select {
    pub(crate) fn matches(&self, subject: &Subject) -> bool {
        let id = |id: &String| subject.ids.iter().any(|it| it.starts_with(id.as_str()));
        let pod = |pod: &String| subject.pods.iter().any(|it| glob(pod, it));
        self.id.as_ref().is_none_or(id)
            && self.pod.as_ref().is_none_or(pod)
            && self.event.is_none_or(|event| subject.event == Some(event))
    }

    /// Whether it matches everything.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn names_pods(&self) -> bool {
        self.pod.is_some()
    }

    fn names_a_subject(&self) -> bool {
        self.id.is_some() || self.pod.is_some()
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
