//! Stopping single containers.

use std::time::Duration;

use rubelet_api::container::Container;

use super::draft::Draft;
use crate::{
    observed::ObservedContainer,
    step::{Kill, KillOrder},
    why::{KillCause, Why},
};

impl Draft<'_> {
    /// Stops one container on its own; `restarts` if it will be started again. Its grace is that of
    /// the definition it was made from: upstream ends the whole pod of an edited manifest, by its own.
    pub(super) fn kill(&mut self, found: &ObservedContainer, cause: KillCause, restarts: bool) {
        let container = self.snapshot.pod.spec.container(&found.name);
        let grace = probe_grace(container, cause)
            .or(found.grace)
            .unwrap_or(self.snapshot.pod.spec.termination_grace_period);
        let kill = kill(found, cause, grace, message(&found.name, cause, restarts));
        self.why(Why::Kills(found.name.clone(), cause));
        self.kills.push(kill);
    }
}

/// A container that ends without waiting for others.
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

/// The grace that a probe sets for the containers which it ends.
fn probe_grace(container: Option<&Container>, cause: KillCause) -> Option<Duration> {
    let probe = match cause {
        KillCause::Liveness => container?.liveness.as_ref(),
        KillCause::Startup => container?.startup.as_ref(),
        _ => None,
    };
    probe?.termination_grace
}

/// The words of the event, as the kubelet has them.
fn message(name: &str, cause: KillCause, restarts: bool) -> String {
    let mut message = match cause {
        KillCause::DefinitionChanged => format!("Container {name} definition changed"),
        KillCause::Liveness => format!("Container {name} failed liveness probe"),
        KillCause::Startup => format!("Container {name} failed startup probe"),
        KillCause::Asked => return format!("Container {name} is restarted on request"),
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
