//! Lists with missing items.

use rubelet_cri::v1;

use super::known;
use crate::{Subject, event::Dice};

/// Items that are missing from lists of one RPC. See [`Sim::inject_list`](crate::Sim::inject_list).
#[derive(Debug, Clone)]
pub struct ListFault {
    call: String,
    missing: Missing,
    left: Option<usize>,
}

#[derive(Debug, Clone)]
enum Missing {
    Subject(Subject),
    Chance { per_mille: u16, dice: Dice },
}

impl ListFault {
    fn new(call: &str, missing: Missing) -> Self {
        known(call);
        assert!(
            ["ListPodSandbox", "ListContainers"].contains(&call),
            "{call} lists no sandboxes or containers"
        );
        Self {
            call: call.to_owned(),
            missing,
            left: Some(1),
        }
    }

    /// The next response to `ListPodSandbox` or `ListContainers` is empty.
    ///
    /// # Panics
    /// It is another RPC.
    #[must_use]
    pub fn empty(call: &str) -> Self {
        Self::without(call, Subject::any())
    }

    /// The next response lacks the items about this subject.
    ///
    /// # Panics
    /// It is another RPC.
    #[must_use]
    pub fn without(call: &str, subject: Subject) -> Self {
        Self::new(call, Missing::Subject(subject))
    }

    /// The next response lacks random items, `per_mille` of a thousand, chosen by `seed`.
    ///
    /// # Panics
    /// It is another RPC.
    #[must_use]
    pub fn partial(call: &str, per_mille: u16, seed: u64) -> Self {
        let dice = Dice::new(seed);
        Self::new(call, Missing::Chance { per_mille, dice })
    }

    /// This many responses instead of one.
    #[must_use]
    pub fn times(self, times: usize) -> Self {
        Self {
            left: Some(times),
            ..self
        }
    }

    /// All responses, until [`Sim::clear_faults`](crate::Sim::clear_faults).
    #[must_use]
    pub fn always(self) -> Self {
        Self { left: None, ..self }
    }
}

/// The remaining faults of lists.
#[derive(Default)]
pub(crate) struct ListFaults(pub(crate) Vec<ListFault>);

impl ListFaults {
    /// Removes from a response the items that the oldest fault of this RPC selects.
    pub(crate) fn shorten<T>(&mut self, call: &str, items: &mut Vec<T>, about: fn(&T) -> Subject) {
        let Some(index) = self.0.iter().position(|fault| fault.call == call) else {
            return;
        };
        let fault = &mut self.0[index];
        match &mut fault.missing {
            Missing::Subject(subject) => items.retain(|item| !subject.matches(&about(item))),
            Missing::Chance { per_mille, dice } => items.retain(|_| !dice.hits(*per_mille)),
        }
        if let Some(left) = &mut fault.left {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.0.remove(index);
            }
        }
    }
}

/// The subject of an item of `ListPodSandbox`.
pub(crate) fn of_sandbox(item: &v1::PodSandbox) -> Subject {
    Subject {
        pod_uid: item.metadata.as_ref().map(|of| of.uid.clone()),
        ..Subject::id(&item.id)
    }
}
