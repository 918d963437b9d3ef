//! Pods that do not match the node, until the node is read again from the API server: a label may
//! have been set just before a pod was bound, and the cached node may be older than that.
//!
//! One read serves all pods that wait when it begins, and does not block the table.

use std::collections::BTreeMap;

use rubelet_base::PodUid;
use tokio::task::JoinSet;

/// The pods that did not match, and the read in progress.
#[derive(Default)]
pub(super) struct NodeMatch {
    pods: BTreeMap<PodUid, NodeRead>,
    /// At most one task.
    reading: JoinSet<()>,
}

/// The progress of reading the node again for a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NodeRead {
    /// The pod waits for the next read.
    Waiting,
    /// A read that began after the comparison is in progress.
    Reading,
    /// This read has ended.
    Done,
}

impl NodeMatch {
    /// True if a pod that does not match was compared with a node that was read after the pod had
    /// arrived; if not, it waits for a read.
    pub(super) fn is_final(&mut self, uid: &PodUid) -> bool {
        if self.pods.get(uid) == Some(&NodeRead::Done) {
            self.pods.remove(uid);
            return true;
        }
        self.pods.entry(uid.clone()).or_insert(NodeRead::Waiting);
        false
    }

    /// True if the pod waits for a read.
    pub(super) fn waits(&self, uid: &PodUid) -> bool {
        self.pods
            .get(uid)
            .is_some_and(|read| *read != NodeRead::Done)
    }

    /// Drops pods that are no longer desired.
    pub(super) fn retain(&mut self, is_wanted: impl Fn(&PodUid) -> bool) {
        self.pods.retain(|uid, _| is_wanted(uid));
    }

    /// Begins a read if a pod waits for one and none is in progress.
    pub(super) fn begin<F>(&mut self, read: impl FnOnce() -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let waiting = self.pods.values().any(|read| *read == NodeRead::Waiting);
        if waiting && self.reading.is_empty() {
            self.advance(NodeRead::Waiting, NodeRead::Reading);
            self.reading.spawn(read());
        }
    }

    /// Resolves when the read has ended; never if there is none. Cancel safety: the read is kept.
    pub(super) async fn ended(&mut self) {
        // Also after an error: there is no newer node.
        if self.reading.join_next().await.is_none() {
            std::future::pending::<()>().await;
        }
        self.advance(NodeRead::Reading, NodeRead::Done);
    }

    fn advance(&mut self, from: NodeRead, to: NodeRead) {
        let of = self.pods.values_mut().filter(|read| **read == from);
        of.for_each(|read| *read = to);
    }
}

#[cfg(test)]
mod tests {
    use std::future::{Ready, ready};

    use super::*;

    #[tokio::test]
    async fn a_read_serves_only_pods_that_waited_when_it_began() {
        let [one, two] = ["one", "two"].map(PodUid::from);
        let mut matches = NodeMatch::default();
        matches.begin(|| -> Ready<()> { panic!("nobody waits") });
        assert!(!matches.is_final(&one));
        matches.begin(|| ready(()));
        assert!(!matches.is_final(&two));
        matches.begin(|| -> Ready<()> { panic!("one read at a time") });
        matches.ended().await;
        assert!(!matches.waits(&one) && matches.waits(&two));
        assert!(matches.is_final(&one));
        assert!(!matches.is_final(&two));
        matches.begin(|| ready(()));
        matches.ended().await;
        assert!(matches.is_final(&two));
        // What comes again is compared again.
        assert!(!matches.is_final(&one));
        matches.retain(|_| false);
        assert!(!matches.waits(&one));
    }
}
