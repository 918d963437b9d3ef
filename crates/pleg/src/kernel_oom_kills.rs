//! OOM kills in containers that the kernel's log tells of. A runtime may miss one: containerd reads how many there were from
//! the container's cgroup, and systemd may have removed that by then.

use std::collections::VecDeque;

use rubelet_base::ContainerId;
use rubelet_pod_plan::{ObservedContainer, ObservedPod, observed::Exit};

use super::oom_reasons::may_change;

/// How many containers are remembered.
const KEPT: usize = 1024;

/// The containers in which the kernel killed, the last one at the end.
#[derive(Debug, Default)]
pub(super) struct KernelOomKills(VecDeque<ContainerId>);

impl KernelOomKills {
    pub(super) fn note(&mut self, container: ContainerId) {
        if self.0.contains(&container) {
            return;
        }
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(container);
    }

    /// Changes the reasons of exits to `OOMKilled` where the kernel killed, or where the observation before had it.
    pub(super) fn correct(&self, old: &ObservedPod, new: &mut ObservedPod) {
        for found in &mut new.containers {
            let exits = found.phase.exit_mut().into_iter();
            let exits = exits.chain(found.kernel_exit.as_deref_mut());
            for exit in exits.filter(|exit| may_change(exit)) {
                if self.0.contains(&found.id) || had_reason(old, &found.id) {
                    exit.reason = Exit::OOM_KILLED.into();
                }
            }
        }
    }
}

fn had_reason(old: &ObservedPod, id: &ContainerId) -> bool {
    let is_known = |found: &&ObservedContainer| found.id == *id;
    let exit = old.containers.iter().find(is_known);
    let exit = exit.and_then(|found| found.phase.exit());
    exit.is_some_and(|exit| &*exit.reason == Exit::OOM_KILLED)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use rubelet_pod_plan::ContainerPhase;

    use super::*;
    use crate::tests::seen_container;

    fn exit(code: i32, reason: &str) -> Exit {
        Exit {
            code,
            reason: reason.into(),
            message: "".into(),
            started_at: None,
            finished_at: Timestamp::UNIX_EPOCH,
        }
    }

    fn pod(id: &str, code: i32, reason: &str) -> ObservedPod {
        ObservedPod {
            containers: vec![seen_container(
                id,
                ContainerPhase::Exited(exit(code, reason)),
            )],
            ..ObservedPod::default()
        }
    }

    fn corrected(kills: &KernelOomKills, old: &ObservedPod, mut new: ObservedPod) -> Box<str> {
        kills.correct(old, &mut new);
        new.containers[0].phase.exit().unwrap().reason.clone()
    }

    #[test]
    fn an_exit_by_sigkill_has_the_reason_that_the_kernel_tells() {
        let (mut kills, none) = (KernelOomKills::default(), ObservedPod::default());
        kills.note("c".into());
        for (id, code, reason, expected) in [
            ("c", 137, "Error", "OOMKilled"),
            ("c", 137, "OOMKilled", "OOMKilled"),
            ("c", 1, "Error", "Error"),
            ("c", 0, "Completed", "Completed"),
            ("d", 137, "Error", "Error"),
        ] {
            let found = corrected(&kills, &none, pod(id, code, reason));
            assert_eq!(&*found, expected, "{id} {code} {reason}");
        }
    }

    #[test]
    fn an_exit_that_the_runtime_does_not_report_has_it_too() {
        let mut kills = KernelOomKills::default();
        kills.note("c".into());
        let started_at = Timestamp::UNIX_EPOCH;
        let mut found = seen_container("c", ContainerPhase::Running { started_at });
        found.kernel_exit = Some(Box::new(exit(137, "Error")));
        let mut pod = ObservedPod {
            containers: vec![found],
            ..ObservedPod::default()
        };
        kills.correct(&ObservedPod::default(), &mut pod);
        let reason = &pod.containers[0].kernel_exit.as_ref().unwrap().reason;
        assert_eq!(&**reason, "OOMKilled");
    }

    #[test]
    fn a_reason_that_was_published_stays_when_its_kill_is_forgotten() {
        let (mut kills, published) = (KernelOomKills::default(), pod("c", 137, "OOMKilled"));
        kills.note("c".into());
        for number in 0..KEPT {
            kills.note(format!("c{number}").as_str().into());
            kills.note("c0".into());
        }
        assert_eq!(kills.0.len(), KEPT);
        let none = ObservedPod::default();
        assert_eq!(&*corrected(&kills, &none, pod("c", 137, "Error")), "Error");
        let again = corrected(&kills, &published, pod("c", 137, "Error"));
        assert_eq!(&*again, "OOMKilled");
    }
}
