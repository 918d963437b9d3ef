//! Actions while faults are injected.

use anyhow::Result;
use chaos_cri::Dice;
use rubelet_testbed::cleanup::processes;

use super::node::Node;
use super::pods::{DesiredPods, PodKind, choose};

/// The highest attempt of a container that is still killed: each kill lengthens the back-off, and a
/// seed must end in reasonable time.
const MOST_ATTEMPTS: u32 = 2;

/// An action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Add,
    Edit,
    Remove,
    KillContainer,
    RestartPod,
    KillRuntime,
    RestartRuntime,
    KillAgent,
}

/// The random choices; frequent actions are repeated.
const CHOICES: [Action; 16] = [
    Action::Add,
    Action::Add,
    Action::Edit,
    Action::Edit,
    Action::Edit,
    Action::Remove,
    Action::Remove,
    Action::KillContainer,
    Action::KillContainer,
    Action::KillContainer,
    Action::KillContainer,
    Action::RestartPod,
    Action::RestartPod,
    Action::KillRuntime,
    Action::RestartRuntime,
    Action::KillAgent,
];

impl Action {
    pub(super) fn draw(dice: &mut Dice, wanted: &DesiredPods) -> Self {
        match CHOICES[choose(dice, CHOICES.len())] {
            Self::Add if !wanted.has_room() => Self::Remove,
            action => action,
        }
    }

    /// Performs the action; returns a line about it.
    pub(super) fn perform(
        self,
        node: &mut Node,
        dice: &mut Dice,
        wanted: &mut DesiredPods,
    ) -> Result<String> {
        let nothing = || Ok(format!("{self:?}: no suitable pod"));
        match self {
            Self::Add => {
                let pod = wanted.add(dice);
                node.agent.write_manifest(&pod.file(), &pod.manifest())?;
                Ok(format!("add {}", pod.name))
            }
            Self::Edit => {
                // The effect of an edit on a pod that may have terminated is not tested here.
                let some = wanted.some(dice, |pod| pod.kind != PodKind::Job);
                let Some(pod) = some.and_then(|pod| wanted.edit(&pod.name)) else {
                    return nothing();
                };
                node.agent.write_manifest(&pod.file(), &pod.manifest())?;
                Ok(format!("edit {} to version {}", pod.name, pod.version))
            }
            Self::Remove => {
                let Some(pod) = wanted.some(dice, |_| true) else {
                    return nothing();
                };
                node.agent.remove_manifest(&pod.file())?;
                wanted.remove(&pod.name);
                Ok(format!("remove {}", pod.name))
            }
            Self::KillContainer => Ok(kill_container(node, dice)?.unwrap_or(nothing()?)),
            Self::RestartPod => {
                let Some(pod) = wanted.some(dice, |pod| !pod.running().is_empty()) else {
                    return nothing();
                };
                let full = node.agent.full_name(&pod.name);
                let done = node.agent.cli(&["restart", &full, "--no-wait"])?;
                // A pod that does not exist yet, or whose last restart is in progress, is rejected.
                let said = done.stderr.lines().next().unwrap_or("done").to_owned();
                Ok(format!("rubelet restart {full}: {said}"))
            }
            Self::KillRuntime => {
                node.runtime.kill9()?;
                node.runtime.resume()?;
                Ok("kill -9 the runtime and start it".to_owned())
            }
            Self::RestartRuntime => {
                node.runtime.halt()?;
                node.runtime.resume()?;
                Ok("restart the runtime".to_owned())
            }
            Self::KillAgent => {
                node.agent.kill9()?;
                node.agent.start()?;
                Ok("kill -9 the agent and start it".to_owned())
            }
        }
    }
}

/// Kills the process of some container; `None` if there is none to kill.
fn kill_container(node: &Node, dice: &mut Dice) -> Result<Option<String>> {
    let mut running = node.truth.containers()?;
    running.retain(|container| container.is_running() && container.attempt < MOST_ATTEMPTS);
    running.sort_by(|a, b| (&a.pod, &a.name).cmp(&(&b.pod, &b.name)));
    let Some(victim) = running.get(choose(dice, running.len())) else {
        return Ok(None);
    };
    let what = format!("kill -9 {}/{} {}", victim.pod, victim.name, victim.id);
    // It may exit by itself, or be killed by the agent, at this very moment.
    let killed = node.truth.pid(&victim.id).and_then(processes::kill);
    Ok(Some(match killed {
        Ok(()) => what,
        Err(error) => format!("{what}: too late ({error:#})"),
    }))
}
