//! Exits that the kernel has reported and the runtime has not: the status shows them at once, so
//! that nobody sends a request to a container that is gone while the runtime cleans up. Steps wait
//! for the runtime's report, and so does everything irreversible.

use jiff::Timestamp;
use rubelet_api::{container::TerminationMessagePolicy, pod::Pod};

use crate::{
    observed::{ContainerPhase, Exit, ObservedContainer},
    snapshot::{PodSnapshot, Target},
    step::PodPlan,
};

/// What SIGKILL leaves.
const KILLED: i32 = 137;

/// The plan that `rest` makes from the runtime's reports, with the status and the probes that it
/// would make if the runtime had reported the kernel's exits.
pub(crate) fn plan(
    snapshot: &PodSnapshot<'_>,
    now: Timestamp,
    rest: impl Fn(&PodSnapshot<'_>, Timestamp) -> PodPlan,
) -> PodPlan {
    let mut plan = rest(snapshot, now);
    let pod = snapshot.pod;
    let told = |found: &ObservedContainer| reportable_exit(pod, found).is_some();
    if snapshot.target != Target::Run || !snapshot.observed.containers.iter().any(told) {
        return plan;
    }
    let mut observed = snapshot.observed.clone();
    for found in &mut observed.containers {
        if let Some(exit) = reportable_exit(pod, found) {
            found.phase = ContainerPhase::Exited(exit.clone());
        }
    }
    let ahead = PodSnapshot {
        observed: &observed,
        ..*snapshot
    };
    let ahead = rest(&ahead, now);
    // Others take the place of a pod that has ended, though the runtime may still hold what it used.
    if !ahead.status.phase.is_terminal() {
        plan.status = ahead.status;
        plan.probes = ahead.probes;
    }
    plan
}

/// The exit of a container, if the runtime will report the same one.
fn reportable_exit<'a>(pod: &Pod, found: &'a ObservedContainer) -> Option<&'a Exit> {
    let exit = found.kernel_exit.as_deref()?;
    let container = pod.spec.container(&found.name)?;
    // What the file lacks is taken from the log, which may not be whole yet.
    let log_tells = exit.failed()
        && exit.message.is_empty()
        && container.termination_message_policy == TerminationMessagePolicy::FallbackToLogsOnError;
    // Only the runtime knows whether memory was short.
    let mut all = pod.spec.all_containers();
    let memory_may_tell =
        exit.code == KILLED && all.any(|one| one.resources.limits.memory.is_some());
    let runs = matches!(found.phase, ContainerPhase::Running { .. });
    (runs && !log_tells && !memory_may_tell).then_some(exit)
}
