//! Stopping single containers.

use std::time::Duration;

use rubelet_api::container::Container;

use super::builder::ActionsBuilder;
use crate::{
    observed::ObservedContainer,
    reason::{KillCause, PlanReason},
    step::{Kill, KillOrder},
};

impl ActionsBuilder<'_> {
    /// Stops one container on its own; `restarts` if it will be started again. Its grace period is
    /// that of the definition it was created from: upstream terminates the whole pod of an edited
    /// manifest, with the old pod's grace period.
    pub(super) fn kill(&mut self, found: &ObservedContainer, cause: KillCause, restarts: bool) {
        let container = self.snapshot.pod.spec.container(&found.name);
        let grace = probe_grace(container, cause)
            .or(found.grace)
            .unwrap_or(self.snapshot.pod.spec.termination_grace_period);
        let kill = kill(found, cause, grace, message(&found.name, cause, restarts));
        self.why(PlanReason::Kills(found.name.clone(), cause));
        self.kills.push(kill);
    }
}

/// A kill that does not wait for other containers.
pub(super) fn kill(
    found: &ObservedContainer,
    cause: KillCause,
    grace: Duration,
    message: String,
) -> Kill {
    Kill {
        name: found.name.clone(),
        id: found.id.clone(),
        grace,
        message: message.into(),
        cause,
        pre_stop: found.pre_stop.clone().filter(|_| !grace.is_zero()),
        order: KillOrder::Free,
    }
}

/// The `terminationGracePeriodSeconds` of the probe that failed.
fn probe_grace(container: Option<&Container>, cause: KillCause) -> Option<Duration> {
    let probe = match cause {
        KillCause::Liveness => container?.liveness.as_ref(),
        KillCause::Startup => container?.startup.as_ref(),
        _ => None,
    };
    probe?.termination_grace
}

/// The message of the event, as the kubelet words it.
fn message(name: &str, cause: KillCause, restarts: bool) -> String {
    let mut message = match cause {
        KillCause::DefinitionChanged => format!("Container {name} definition changed"),
        KillCause::Liveness => format!("Container {name} failed liveness probe"),
        KillCause::Startup => format!("Container {name} failed startup probe"),
        KillCause::Requested => return format!("Container {name} is restarted on request"),
        KillCause::Unknown => {
            return format!("Container {name} is in unknown state, try killing it before restart");
        }
        _ => return format!("Stopping container {name}"),
    };
    if restarts {
        message.push_str(", will be restarted");
    }
    message
}
