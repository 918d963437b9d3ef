//! The status that the API server acknowledged for one pod, until the watch shows the same.

use std::sync::Arc;

use rubelet_base::PodUid;
use tokio::time::Instant;

use crate::source::ApiPod;

/// The calls made for one pod and their results.
#[derive(Debug, Clone, Default)]
pub(super) struct PodSyncState {
    /// The answer to the last patch, as long as the watch has not caught up with it.
    acknowledged: Option<Acknowledged>,
    /// When to compare again with what the watch shows.
    pub(super) recheck_at: Option<Instant>,
    /// The API server reported that this version of its copy is gone or another pod: nothing is
    /// sent until the watch reports a newer one.
    dropped: Option<Version>,
    /// The pod of this UID was deleted.
    deleted: Option<PodUid>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Version {
    uid: PodUid,
    resource_version: Box<str>,
}

/// The answer to a patch.
#[derive(Debug, Clone)]
pub(super) struct Acknowledged {
    uid: PodUid,
    /// The resource version of the copy before the patch, and after it.
    before: Box<str>,
    after: Box<str>,
    /// The status that it has now.
    status: Arc<str>,
    /// Version of the pod's entry on the board that was sent; 0 if it must be compared again.
    entry: u64,
}

impl PodSyncState {
    /// A patch was accepted.
    pub(super) fn patched(
        &mut self,
        copy: &Arc<ApiPod>,
        after: &str,
        status: Arc<str>,
        entry: u64,
    ) {
        self.acknowledged = Some(Acknowledged {
            uid: copy.uid.clone(),
            before: copy.resource_version.clone(),
            after: after.into(),
            status,
            entry,
        });
        self.recheck_at = None;
    }

    /// The watch reported this copy: what it has caught up with need not be kept.
    pub(super) fn settle(&mut self, copy: &ApiPod) {
        if let Some(one) = self.acknowledged.as_mut()
            && !one.is_newer_than(copy)
        {
            one.status = "".into();
            self.recheck_at = None;
        }
    }

    /// From now on, compares with what the watch reports.
    pub(super) fn forget_acknowledged(&mut self) {
        self.acknowledged = None;
        self.recheck_at = None;
    }

    /// The status that was sent for the entry is no longer complete.
    pub(super) fn context_changed(&mut self) {
        if let Some(one) = &mut self.acknowledged {
            one.entry = 0;
        }
    }

    /// The API server knows no such pod.
    pub(super) fn dropped(&mut self, copy: &ApiPod) {
        self.dropped = Some(Version {
            uid: copy.uid.clone(),
            resource_version: copy.resource_version.clone(),
        });
    }

    /// The deletion was accepted.
    pub(super) fn deleted(&mut self, uid: &PodUid) {
        self.deleted = Some(uid.clone());
    }

    /// True if nothing has to be sent for this copy.
    pub(super) fn is_done_with(&self, copy: &ApiPod) -> bool {
        let dropped = self.dropped.as_ref().is_some_and(|dropped| {
            dropped.uid == copy.uid && dropped.resource_version == copy.resource_version
        });
        dropped || self.deleted.as_ref() == Some(&copy.uid)
    }

    /// True if the copy is nothing but the echo of what was sent for this version of the entry.
    pub(super) fn is_own_update(&self, copy: &ApiPod, entry: u64) -> bool {
        let acknowledged = self.acknowledged.as_ref();
        acknowledged.is_some_and(|one| {
            one.uid == copy.uid && one.after == copy.resource_version && one.entry == entry
        })
    }

    /// The newest status that the API server is known to have.
    pub(super) fn newest(&self, copy: &ApiPod) -> Arc<str> {
        match &self.acknowledged {
            Some(one) if one.is_newer_than(copy) => Arc::clone(&one.status),
            _ => Arc::clone(&copy.status),
        }
    }

    /// True while the watch has not reported the last patch.
    pub(super) fn waits_for_watch(&self, copy: &ApiPod) -> bool {
        let acknowledged = self.acknowledged.as_ref();
        acknowledged.is_some_and(|one| one.is_newer_than(copy))
    }
}

impl Acknowledged {
    fn is_newer_than(&self, copy: &ApiPod) -> bool {
        if self.uid != copy.uid {
            return false;
        }
        // Resource versions of one resource can be compared (KEP-5504); where they are no numbers,
        // any change of the copy counts as newer.
        let number = |version: &str| version.parse::<u128>().ok();
        match (number(&self.after), number(&copy.resource_version)) {
            (Some(ours), Some(theirs)) => ours > theirs,
            _ => self.after != copy.resource_version && self.before == copy.resource_version,
        }
    }
}
