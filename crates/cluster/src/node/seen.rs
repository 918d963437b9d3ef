//! The node as the API server shows it, from two sides: the watch, and the answers to own requests.
//! Either may be older than the other.

use std::sync::Arc;

use rubelet_node_plan::node_status::object::Node;
use tokio::sync::watch;

/// What is known of the node object.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// The newest state; `None` if there is no object, or nothing is known.
    pub(super) node: Option<Arc<Node>>,
    /// It has to be read again: the watch does not show what an answer showed, or the API server was
    /// away.
    pub(super) doubt: bool,
    /// The API server has said that there is no object. Not so while nothing is known.
    pub(super) absent: bool,
    /// Whether the watch has shown this state or a newer one.
    echoed: bool,
}

impl Seen {
    /// An answer to a request showed the node.
    pub(super) fn answered(&mut self, node: Node) {
        self.doubt = false;
        self.take(node, false);
    }

    /// The watch showed the node.
    pub(super) fn applied(&mut self, node: Node) {
        self.take(node, true);
    }

    /// A complete list of the watch had no node.
    pub(super) fn unlisted(&mut self) {
        match self.echoed || self.node.is_none() {
            true => self.gone(),
            // The list may be older than the answer.
            false => self.doubt = true,
        }
    }

    /// The watch showed that the node was deleted.
    pub(super) fn deleted(&mut self, last: &Node) {
        match &self.node {
            Some(node) if node.metadata.uid != last.metadata.uid => {}
            Some(node) if is_newer(node, last) => self.doubt = true,
            _ => self.gone(),
        }
    }

    /// What is known may be old.
    pub(super) fn doubted(&mut self) {
        self.doubt = self.node.is_some();
    }

    /// An answer showed that there is no node.
    pub(super) fn gone(&mut self) {
        *self = Self {
            absent: true,
            ..Self::default()
        };
    }

    fn take(&mut self, node: Node, echoed: bool) {
        let known = self.node.as_deref();
        if known.is_some_and(|known| is_newer(known, &node)) {
            return;
        }
        let same = known.is_some_and(|known| {
            known.metadata.resource_version == node.metadata.resource_version
                && known.metadata.uid == node.metadata.uid
        });
        self.echoed = echoed || (same && self.echoed);
        if echoed {
            self.doubt = false;
        }
        self.absent = false;
        if !same {
            self.node = Some(Arc::new(node));
        }
    }
}

/// Whether `one` is a later state than `other`. Versions that are no numbers tell nothing.
fn is_newer(one: &Node, other: &Node) -> bool {
    let version = |node: &Node| node.metadata.resource_version.parse::<u64>().ok();
    version(one)
        .zip(version(other))
        .is_some_and(|(one, other)| one > other)
}

/// Changes what is known and wakes those who follow it, if anything of interest changed.
pub(super) fn change(seen: &watch::Sender<Seen>, change: impl FnOnce(&mut Seen)) {
    seen.send_if_modified(|seen| {
        let (node, doubt, absent) = (seen.node.clone(), seen.doubt, seen.absent);
        change(seen);
        let same = match (&node, &seen.node) {
            (Some(old), Some(new)) => Arc::ptr_eq(old, new),
            (None, None) => true,
            _ => false,
        };
        !same || doubt != seen.doubt || absent != seen.absent
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(uid: &str, version: &str) -> Node {
        let mut node = Node::default();
        node.metadata.uid = uid.into();
        node.metadata.resource_version = version.into();
        node
    }

    fn shown(seen: &Seen) -> Option<(&str, &str, bool)> {
        let node = seen.node.as_ref()?;
        let meta = &node.metadata;
        Some((&meta.uid, &meta.resource_version, seen.doubt))
    }

    #[test]
    fn the_newest_state_wins_whoever_shows_it() {
        let mut seen = Seen::default();
        seen.answered(node("a", "5"));
        seen.applied(node("a", "3"));
        assert_eq!(shown(&seen), Some(("a", "5", false)));
        seen.applied(node("a", "7"));
        seen.answered(node("a", "6"));
        assert_eq!(shown(&seen), Some(("a", "7", false)));
        seen.applied(node("b", "9"));
        assert_eq!(shown(&seen), Some(("b", "9", false)));
    }

    #[test]
    fn a_watch_that_is_behind_only_raises_doubt() {
        let mut seen = Seen::default();
        seen.answered(node("a", "5"));
        seen.unlisted();
        assert_eq!(shown(&seen), Some(("a", "5", true)));
        seen.answered(node("a", "5"));
        assert_eq!(shown(&seen), Some(("a", "5", false)));
        seen.deleted(&node("z", "2"));
        seen.deleted(&node("a", "4"));
        assert_eq!(shown(&seen), Some(("a", "5", true)));
        seen.applied(node("a", "5"));
        assert_eq!(shown(&seen), Some(("a", "5", false)));
    }

    #[test]
    fn a_node_that_the_watch_has_shown_is_gone_when_the_watch_says_so() {
        let mut seen = Seen::default();
        seen.applied(node("a", "5"));
        seen.deleted(&node("a", "6"));
        assert_eq!(shown(&seen), None);
        seen.applied(node("b", "7"));
        seen.unlisted();
        assert_eq!(shown(&seen), None);
    }
}
