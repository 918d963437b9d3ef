//! The node as the API server shows it, from two sides: the watch, and the answers to own requests.
//! Either may be older than the other.

use std::sync::Arc;

use rubelet_node_plan::node_status::object::Node;
use tokio::sync::watch;

/// The observed node object.
#[derive(Debug, Clone, Default)]
pub(super) struct ObservedNode {
    /// The newest state; `None` if there is no object, or nothing is known.
    pub(super) node: Option<Arc<Node>>,
    /// It has to be read again: the watch does not show what an answer showed, or the API server was
    /// away.
    pub(super) stale: bool,
    /// The API server has reported that there is no object. False while nothing is known.
    pub(super) absent: bool,
    /// Whether the watch has shown this state or a newer one.
    watch_confirmed: bool,
}

impl ObservedNode {
    /// An answer to a request showed the node.
    pub(super) fn answered(&mut self, node: Node) {
        self.stale = false;
        self.take(node, false);
    }

    /// The watch showed the node.
    pub(super) fn applied(&mut self, node: Node) {
        self.take(node, true);
    }

    /// A complete list of the watch had no node.
    pub(super) fn unlisted(&mut self) {
        match self.watch_confirmed || self.node.is_none() {
            true => self.gone(),
            // The list may be older than the answer.
            false => self.stale = true,
        }
    }

    /// The watch showed that the node was deleted.
    pub(super) fn deleted(&mut self, last: &Node) {
        match &self.node {
            Some(node) if node.metadata.uid != last.metadata.uid => {}
            Some(node) if is_newer(node, last) => self.stale = true,
            _ => self.gone(),
        }
    }

    /// The observed state may be stale.
    pub(super) fn mark_stale(&mut self) {
        self.stale = self.node.is_some();
    }

    /// An answer showed that there is no node.
    pub(super) fn gone(&mut self) {
        *self = Self {
            absent: true,
            ..Self::default()
        };
    }

    fn take(&mut self, node: Node, watch_confirmed: bool) {
        let known = self.node.as_deref();
        if known.is_some_and(|known| is_newer(known, &node)) {
            return;
        }
        let same = known.is_some_and(|known| {
            known.metadata.resource_version == node.metadata.resource_version
                && known.metadata.uid == node.metadata.uid
        });
        self.watch_confirmed = watch_confirmed || (same && self.watch_confirmed);
        if watch_confirmed {
            self.stale = false;
        }
        self.absent = false;
        if !same {
            self.node = Some(Arc::new(node));
        }
    }
}

/// Whether `one` is a later state than `other`. Versions that are not numbers can't be compared.
fn is_newer(one: &Node, other: &Node) -> bool {
    let version = |node: &Node| node.metadata.resource_version.parse::<u64>().ok();
    version(one)
        .zip(version(other))
        .is_some_and(|(one, other)| one > other)
}

/// Changes the observed node, and wakes subscribers if anything of interest changed.
pub(super) fn change(seen: &watch::Sender<ObservedNode>, change: impl FnOnce(&mut ObservedNode)) {
    seen.send_if_modified(|seen| {
        let (node, stale, absent) = (seen.node.clone(), seen.stale, seen.absent);
        change(seen);
        let same = match (&node, &seen.node) {
            (Some(old), Some(new)) => Arc::ptr_eq(old, new),
            (None, None) => true,
            _ => false,
        };
        !same || stale != seen.stale || absent != seen.absent
    });
}

#[cfg(test)]
mod tests;
