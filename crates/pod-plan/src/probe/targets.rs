//! The probes of a pod to run now.

use rubelet_api::container::Container;

use super::{ProbeKind, ProbeResult, ProbeTarget};
use crate::{
    observed::{ContainerPhase, ObservedContainer},
    snapshot::{PodSnapshot, Target},
};

/// The probes of all running containers whose postStart hook has run: the startup probe until it
/// has succeeded, then the other two. While a removed pod terminates, regular containers keep only
/// their readiness probes; sidecars keep all, because they serve the others until the end. A pod
/// that is `over` (its phase is terminal, or it is being terminated as `Failed`) has none.
pub(crate) fn targets(snapshot: &PodSnapshot<'_>, over: bool) -> Vec<ProbeTarget> {
    let mut targets = Vec::new();
    if over {
        return targets;
    }
    let spec = &snapshot.pod.spec;
    let ends = snapshot.target != Target::Run;
    let sidecars = spec.sidecars().map(|(_, container)| (container, false));
    let regular = spec.containers.iter().map(|container| (container, ends));
    for (container, only_readiness) in sidecars.chain(regular) {
        if let Some(found) = snapshot.observed.newest(&container.name) {
            of_container(snapshot, container, found, only_readiness, &mut targets);
        }
    }
    targets
}

fn of_container(
    snapshot: &PodSnapshot<'_>,
    container: &Container,
    found: &ObservedContainer,
    only_readiness: bool,
    targets: &mut Vec<ProbeTarget>,
) {
    let ContainerPhase::Running { started_at } = found.phase else {
        return;
    };
    if snapshot
        .history
        .post_start_pending(&container.name, &found.id)
    {
        return;
    }
    let started = snapshot.started(container, found);
    for kind in [
        ProbeKind::Startup,
        ProbeKind::Liveness,
        ProbeKind::Readiness,
    ] {
        let wanted = match kind {
            ProbeKind::Startup => !started && !only_readiness,
            ProbeKind::Liveness => started && !only_readiness,
            ProbeKind::Readiness => started,
        };
        if wanted && kind.of(container).is_some() {
            let kept = snapshot.probe_outcome(found, kind);
            targets.push(ProbeTarget {
                container: container.name.clone(),
                kind,
                id: found.id.clone(),
                started_at,
                initial: kept.unwrap_or(match kind {
                    ProbeKind::Startup => ProbeResult::Unknown,
                    ProbeKind::Liveness => ProbeResult::Success,
                    ProbeKind::Readiness => ProbeResult::Failure,
                }),
            });
        }
    }
}
