//! Exits that the kernel has reported and the runtime has not: the status shows them at once, so
//! that no client sends requests to an exited container while the runtime cleans up. Steps, and
//! everything irreversible, wait for the runtime's report.

use jiff::Timestamp;
use rubelet_api::{container::TerminationMessagePolicy, pod::Pod};

use crate::{
    observed::{ContainerPhase, Exit, ObservedContainer},
    snapshot::{PodSnapshot, Target},
    step::PodPlan,
};

/// Exit code after SIGKILL.
const KILLED: i32 = 137;

/// The plan that `rest` makes from the runtime's reports, with the status and the probes that
/// `rest` makes if the exits that the kernel reported are included.
pub(crate) fn plan(
    snapshot: &PodSnapshot<'_>,
    now: Timestamp,
    rest: impl Fn(&PodSnapshot<'_>, Timestamp) -> PodPlan,
) -> PodPlan {
    let mut plan = rest(snapshot, now);
    let pod = snapshot.pod;
    let reported = |found: &ObservedContainer| reportable_exit(pod, found).is_some();
    if snapshot.target != Target::Run || !snapshot.observed.containers.iter().any(reported) {
        return plan;
    }
    let mut observed = snapshot.observed.clone();
    for found in &mut observed.containers {
        if let Some(exit) = reportable_exit(pod, found) {
            found.phase = ContainerPhase::Exited(exit.clone());
        }
    }
    let with_exits = PodSnapshot {
        observed: &observed,
        ..*snapshot
    };
    let plan_with_exits = rest(&with_exits, now);
    // A terminal phase frees the pod's resources for other pods, but the runtime may still use
    // them.
    if !plan_with_exits.status.phase.is_terminal() {
        plan.status = plan_with_exits.status;
        plan.probes = plan_with_exits.probes;
    }
    plan
}

/// The exit of a container, if the runtime will report the same one.
fn reportable_exit<'a>(pod: &Pod, found: &'a ObservedContainer) -> Option<&'a Exit> {
    let exit = found.kernel_exit.as_deref()?;
    let container = pod.spec.container(&found.name)?;
    // An empty message is taken from the log, which may be incomplete yet.
    let log_pending = exit.failed()
        && exit.message.is_empty()
        && container.termination_message_policy == TerminationMessagePolicy::FallbackToLogsOnError;
    // Only the runtime knows whether it was an OOM kill.
    let mut all = pod.spec.all_containers();
    let may_be_oom = exit.code == KILLED && all.any(|one| one.resources.limits.memory.is_some());
    let runs = matches!(found.phase, ContainerPhase::Running { .. });
    (runs && !log_pending && !may_be_oom).then_some(exit)
}
