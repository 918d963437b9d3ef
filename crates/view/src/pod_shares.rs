//! Threads that a hanging file system of a pod may block forever: bounded in all, and for each pod.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use rubelet_base::PodUid;

/// A number of threads, of which one pod gets a part only.
#[derive(Debug)]
pub(super) struct PodShares {
    all: usize,
    each: usize,
    taken: Mutex<HashMap<PodUid, usize>>,
}

/// The right to one thread; given back when it is dropped.
#[derive(Debug)]
pub(super) struct PodShare {
    shares: Arc<PodShares>,
    uid: PodUid,
}

impl PodShares {
    /// At most `all` at a time, `each` of them for the same pod.
    pub(super) fn new(all: usize, each: usize) -> Arc<Self> {
        Arc::new(Self {
            all,
            each,
            taken: Mutex::default(),
        })
    }

    /// One for this pod; `None` if it has its part, or none is left.
    pub(super) fn take(self: &Arc<Self>, uid: &PodUid) -> Option<PodShare> {
        let mut taken = self.taken.lock();
        let own = taken.get(uid).copied().unwrap_or_default();
        if own == self.each || taken.values().sum::<usize>() == self.all {
            return None;
        }
        taken.insert(uid.clone(), own + 1);
        Some(PodShare {
            shares: Arc::clone(self),
            uid: uid.clone(),
        })
    }
}

impl Drop for PodShare {
    fn drop(&mut self) {
        let mut taken = self.shares.taken.lock();
        match taken.get_mut(&self.uid) {
            Some(own) if *own > 1 => *own -= 1,
            _ => {
                taken.remove(&self.uid);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_whose_files_hang_takes_its_part_only() {
        let shares = PodShares::new(3, 2);
        let [web, api, db] = ["web", "api", "db"].map(PodUid::from);
        let held = [shares.take(&web), shares.take(&web)];
        assert!(held.iter().all(Option::is_some));
        assert!(shares.take(&web).is_none());
        let other = shares.take(&api);
        assert!(other.is_some());
        assert!(shares.take(&db).is_none());
        drop(held);
        assert!(shares.take(&web).is_some());
        drop(other);
        assert!(shares.taken.lock().is_empty());
    }
}
