//! Finds out whether the OOM killer has ended a container.

use rubelet_cgroup_plan::{CgroupLayout, CgroupPath, runtime_cgroup::is_of_pod};

use super::{container_state::ContainerState, shim::Shim};

impl Shim {
    /// To be called before a container with this cgroup has a process.
    pub(super) fn begin_oom_kills(&mut self, container: &CgroupPath) {
        if !self.oom_kills.has_begun() {
            let pod = self.oom_kills_of_pod(container);
            self.oom_kills.begin(pod);
        }
    }

    /// The processes of a container that the OOM killer has killed. To be called once, when its init has exited.
    pub(super) fn settle_oom_kills(&mut self, slot: u32) -> u64 {
        let Some(container) = self.containers.get(&slot) else {
            return 0;
        };
        let cgroup = container.what.cgroup.clone();
        if let Some(kills) = self.oom_kills_in(&cgroup) {
            self.oom_kills.settle(kills);
            return kills;
        }
        let Some(pod) = self.oom_kills_of_pod(&cgroup) else {
            return 0;
        };
        let others = self.containers.iter().filter(|(other, one)| {
            let has_ended = matches!(
                one.state,
                ContainerState::Aborted { .. } | ContainerState::Exited { .. }
            );
            **other != slot && !has_ended
        });
        let others: Vec<_> = others.map(|(_, one)| one.what.cgroup.clone()).collect();
        let others: Vec<_> = others.iter().map(|one| self.oom_kills_in(one)).collect();
        self.oom_kills.settle_lost(pod, &others)
    }

    fn oom_kills_in(&mut self, cgroup: &CgroupPath) -> Option<u64> {
        self.cgroups().ok()?.oom_kills(cgroup).ok()
    }

    /// The kills in the cgroup of the pod; `None` where other pods may be in it, or the kernel does not count for the
    /// cgroups below.
    fn oom_kills_of_pod(&mut self, container: &CgroupPath) -> Option<u64> {
        let pod = container.parent().filter(|pod| is_of_pod(pod.name()))?;
        let counts_below = self.cgroups().ok()?.layout() == CgroupLayout::V2;
        counts_below.then(|| self.oom_kills_in(&pod)).flatten()
    }
}
