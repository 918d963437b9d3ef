//! Collects the parts of a decision.

use jiff::Timestamp;

use super::Actions;
use crate::{
    reason::PlanReason,
    snapshot::PodSnapshot,
    step::{Kill, Step},
};

/// The decision so far, and its inputs.
pub(super) struct ActionsBuilder<'a> {
    pub(super) snapshot: &'a PodSnapshot<'a>,
    pub(super) now: Timestamp,
    pub(super) kills: Vec<Kill>,
    pub(super) starts: Vec<Step>,
    pub(super) actions: Actions,
}

impl<'a> ActionsBuilder<'a> {
    pub(super) fn new(snapshot: &'a PodSnapshot<'a>, now: Timestamp) -> Self {
        Self {
            snapshot,
            now,
            kills: Vec::new(),
            starts: Vec::new(),
            actions: Actions::default(),
        }
    }

    pub(super) fn why(&mut self, why: PlanReason) {
        self.actions.why.push(why);
    }

    /// Appends the steps: kills first, then starts.
    pub(super) fn append_steps(&mut self) {
        if !self.kills.is_empty() {
            let kills = std::mem::take(&mut self.kills);
            self.actions.steps.push(Step::KillContainers(kills));
        }
        self.actions.steps.append(&mut self.starts);
    }
}
