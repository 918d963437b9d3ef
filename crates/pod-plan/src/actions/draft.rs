//! A decision in the making.

use jiff::Timestamp;

use super::Actions;
use crate::{
    snapshot::PodSnapshot,
    step::{Kill, Step},
    why::Why,
};

/// What has been decided so far.
pub(super) struct Draft<'a> {
    pub(super) snapshot: &'a PodSnapshot<'a>,
    pub(super) now: Timestamp,
    pub(super) kills: Vec<Kill>,
    pub(super) starts: Vec<Step>,
    pub(super) actions: Actions,
}

impl<'a> Draft<'a> {
    pub(super) fn new(snapshot: &'a PodSnapshot<'a>, now: Timestamp) -> Self {
        Self {
            snapshot,
            now,
            kills: Vec::new(),
            starts: Vec::new(),
            actions: Actions::default(),
        }
    }

    pub(super) fn why(&mut self, why: Why) {
        self.actions.why.push(why);
    }

    /// Kills come first, then starts.
    pub(super) fn order(&mut self) {
        if !self.kills.is_empty() {
            let kills = std::mem::take(&mut self.kills);
            self.actions.steps.push(Step::KillContainers(kills));
        }
        self.actions.steps.append(&mut self.starts);
    }
}
