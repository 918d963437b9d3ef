//! A rule: which calls, under which conditions, and what goes wrong with them.

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

/// One rule, such as `ContainerStatus id=3f2a chance=10% delay=2s`. Made from its text, which it
/// shows again.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    text: String,
    calls: String,
    pub(crate) select: Select,
    pub(crate) when: When,
    pub(crate) fault: Fault,
}

/// What a call or a message must be about. Nothing means anything.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Select {
    id: Option<String>,
    pod: Option<String>,
    event: Option<ContainerEventType>,
}

/// Which of the calls that are meant are hit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct When {
    /// How many of a million.
    pub(crate) chance: u32,
    /// The first ones, which are left alone.
    pub(crate) skip: u64,
    /// Only each so-manieth after that.
    pub(crate) every: u64,
    /// The most that are hit.
    pub(crate) times: u64,
}

impl Default for When {
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
    /// Whether it means calls of this RPC, at this stage of them.
    pub(crate) fn is_for(&self, rpc: &Rpc, stage: Stage) -> bool {
        glob(&self.calls, rpc.name)
            && self.fault.stage(rpc.shape) == Some(stage)
            && (rpc.has_subject || !self.select.names_a_subject())
    }

    /// Whether it means what this call or message is about. Rules about lists mean all lists, and
    /// choose among the items.
    pub(crate) fn takes(&self, rpc: &Rpc, subject: &Subject) -> bool {
        (rpc.shape.is_list() && self.fault.is_about_items()) || self.select.takes(subject)
    }
}

impl Select {
    pub(crate) fn takes(&self, subject: &Subject) -> bool {
        let id = |id: &String| subject.ids.iter().any(|it| it.starts_with(id.as_str()));
        let pod = |pod: &String| subject.pods.iter().any(|it| glob(pod, it));
        self.id.as_ref().is_none_or(id)
            && self.pod.as_ref().is_none_or(pod)
            && self.event.is_none_or(|event| subject.event == Some(event))
    }

    /// Whether everything is meant.
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
