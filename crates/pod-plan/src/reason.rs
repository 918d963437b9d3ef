//! The reasons of a plan, as values: logged, shown to operators, asserted in tests.

use std::fmt;

use jiff::Timestamp;
use rubelet_api::wire::seconds;
use rubelet_base::{ContainerId, SandboxId};

/// A reason for a step of a plan, or for the lack of one.
#[derive(Debug, Clone, PartialEq)]
pub enum PlanReason {
    /// The pod has no sandbox.
    NoSandbox,
    /// More than one sandbox is READY.
    SeveralSandboxes(usize),
    /// The newest sandbox is not READY.
    SandboxNotReady(SandboxId),
    /// The newest sandbox is in the wrong network namespace.
    SandboxNetworkChanged(SandboxId),
    /// The newest sandbox has no address.
    SandboxWithoutAddress(SandboxId),
    /// The definition of the sandbox has changed.
    SandboxDefinitionChanged(SandboxId),
    /// Creating the sandbox failed; the next attempt is at this time.
    SandboxRetry(Timestamp),
    /// All containers have exited and none will be restarted.
    PodCompleted,
    /// The pod has a terminal phase and is not started again.
    PhaseIsTerminal,
    /// The pod was active longer than `activeDeadlineSeconds`.
    DeadlineExceeded,
    /// The pod is evicted, for this reason.
    Evicted(Box<str>),
    /// No source defines the pod any more.
    NotWanted,
    /// The init container failed and may not be restarted.
    InitFailed(Box<str>),
    /// Later containers wait for this init container to exit.
    WaitsForInit(Box<str>),
    /// The start of this container was interrupted; it never ran.
    StartInterrupted(Box<str>),
    /// The agent stopped before the postStart hook of this container ended.
    PostStartPending(Box<str>),
    /// This container exited with a code that restarts all containers.
    RestartsAllContainers(Box<str>, i32),
    /// A container starts.
    Starts(Box<str>, StartCause),
    /// A container is stopped.
    Kills(Box<str>, KillCause),
    /// A container is in back-off until this time.
    BackOff(Box<str>, Timestamp),
    /// Dead containers beyond the newest of each name are removed.
    Prunes(usize),
    /// The process of this container has exited; its next instance is created before the runtime
    /// reports the exit.
    Precreates(Box<str>),
    /// The precreated instance of this container will not be started.
    DiscardsPrecreated(Box<str>),
    /// The runtime reports this container as running although its process exited long ago.
    ExitNotReported(Box<str>, ContainerId),
    /// Everything runs as specified.
    Converged,
}

/// The reason to start a container.
#[derive(Debug, Clone, PartialEq)]
pub enum StartCause {
    /// It has never run.
    First,
    /// It was created but not started.
    CreatedOnly(ContainerId),
    /// It exited with this code.
    Exited(i32),
    /// The runtime lost track of it.
    Unknown,
    /// Its definition changed.
    DefinitionChanged,
    /// The sandbox it ran in is gone.
    SandboxReplaced,
    /// The previous instance is unhealthy and is stopped now.
    Unhealthy,
    /// An operator requested it.
    Requested,
    /// All containers are restarted.
    AllRestart,
}

/// The reason to stop a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KillCause {
    /// Its definition changed.
    DefinitionChanged,
    /// The pod no longer has a container of this name.
    NotInSpec,
    /// The pod's sandbox is replaced.
    SandboxReplaced,
    /// A newer instance took its place.
    Superseded,
    /// The runtime lost track of it.
    Unknown,
    /// The pod terminates.
    PodStops,
    /// The pod was active longer than its deadline.
    Deadline,
    /// The pod is evicted.
    Evicted,
    /// It failed its liveness probe.
    Liveness,
    /// It failed its startup probe.
    Startup,
    /// Its postStart hook failed.
    PostStart,
    /// An operator requested a restart.
    Requested,
    /// All containers are restarted.
    RestartsAll,
}

impl fmt::Display for PlanReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSandbox => f.write_str("the pod has no sandbox"),
            Self::SeveralSandboxes(count) => {
                write!(f, "{count} sandboxes are ready, one is allowed")
            }
            Self::SandboxNotReady(id) => write!(f, "sandbox {id} is not ready"),
            Self::SandboxNetworkChanged(id) => {
                write!(f, "sandbox {id} is in the wrong network namespace")
            }
            Self::SandboxWithoutAddress(id) => write!(f, "sandbox {id} has no address"),
            Self::SandboxDefinitionChanged(id) => {
                write!(f, "the definition of sandbox {id} has changed")
            }
            Self::SandboxRetry(at) => write!(
                f,
                "creating the sandbox failed; next attempt at {}",
                seconds(*at)
            ),
            Self::PodCompleted => {
                f.write_str("all containers have exited and none will be restarted")
            }
            Self::PhaseIsTerminal => f.write_str("the pod has terminated and is not started again"),
            Self::Evicted(reason) => write!(f, "the pod is evicted: {reason}"),
            Self::DeadlineExceeded => f.write_str("the pod was active longer than its deadline"),
            Self::NotWanted => f.write_str("no source defines the pod any more"),
            Self::InitFailed(name) => {
                write!(f, "init container {name} failed and may not be restarted")
            }
            Self::WaitsForInit(name) => write!(f, "waits for init container {name} to exit"),
            Self::StartInterrupted(name) => {
                write!(
                    f,
                    "the start of container {name} was interrupted before it ran; ignores that instance"
                )
            }
            Self::PostStartPending(name) => {
                write!(
                    f,
                    "runs the postStart hook of container {name} again: the agent stopped before it ended"
                )
            }
            Self::RestartsAllContainers(name, code) => write!(
                f,
                "restarts all containers because container {name} exited with code {code}"
            ),
            Self::Starts(name, cause) => write!(f, "starts container {name}: {cause}"),
            Self::Kills(name, cause) => write!(f, "stops container {name}: {cause}"),
            Self::BackOff(name, until) => {
                write!(
                    f,
                    "container {name} is in back-off until {}",
                    seconds(*until)
                )
            }
            Self::Prunes(1) => f.write_str("removes a dead container"),
            Self::Prunes(count) => write!(f, "removes {count} dead containers"),
            Self::Precreates(name) => write!(
                f,
                "the process of container {name} has exited; precreates its next instance before the \
                 runtime reports the exit"
            ),
            Self::DiscardsPrecreated(name) => write!(
                f,
                "removes the precreated instance of container {name}: it will not be started"
            ),
            Self::ExitNotReported(name, id) => write!(
                f,
                "the runtime reports container {name} ({id}) as running, but its process has exited; \
                 waits for the runtime to report the exit"
            ),
            Self::Converged => f.write_str("everything runs as specified"),
        }
    }
}

impl fmt::Display for StartCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::First => f.write_str("it has not run yet"),
            Self::CreatedOnly(id) => write!(f, "{id} was created but not started"),
            Self::Exited(code) => write!(f, "it exited with code {code}"),
            Self::Unknown => f.write_str("the runtime lost track of it"),
            Self::DefinitionChanged => f.write_str("its definition changed"),
            Self::SandboxReplaced => f.write_str("its sandbox was replaced"),
            Self::Unhealthy => f.write_str("the previous instance was unhealthy"),
            Self::Requested => f.write_str("an operator requested it"),
            Self::AllRestart => f.write_str("all containers are restarted"),
        }
    }
}

impl fmt::Display for KillCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DefinitionChanged => "its definition changed",
            Self::NotInSpec => "the pod no longer has a container of this name",
            Self::SandboxReplaced => "the pod's sandbox is replaced",
            Self::Superseded => "a newer instance took its place",
            Self::Unknown => "the runtime lost track of it",
            Self::PodStops => "the pod terminates",
            Self::Deadline => "the pod was active longer than its deadline",
            Self::Evicted => "the pod is evicted",
            Self::Liveness => "it failed its liveness probe",
            Self::Startup => "it failed its startup probe",
            Self::PostStart => "its postStart hook failed",
            Self::Requested => "an operator requested a restart",
            Self::RestartsAll => "all containers are restarted",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_reported_in_whole_seconds() {
        let at: Timestamp = "2026-03-01T12:00:37.920688617Z".parse().unwrap();
        for (why, text) in [
            (
                PlanReason::BackOff("web".into(), at),
                "container web is in back-off until 2026-03-01T12:00:37Z",
            ),
            (
                PlanReason::SandboxRetry(at),
                "creating the sandbox failed; next attempt at 2026-03-01T12:00:37Z",
            ),
        ] {
            assert_eq!(why.to_string(), text);
        }
    }
}
