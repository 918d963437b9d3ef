//! The condition AllContainersRestarting (KEP-5532).

use rubelet_api::{container::RestartAction, status::Phase};

use super::ConditionText;
use crate::{actions::Actions, snapshot::PodSnapshot};

/// The condition; `None` for pods in which no rule can restart all containers.
pub(super) fn condition(
    snapshot: &PodSnapshot<'_>,
    actions: &Actions,
    phase: Phase,
) -> Option<ConditionText> {
    let mut containers = snapshot.pod.spec.all_containers();
    let possible = containers.any(|container| {
        let mut rules = container.restart_rules.iter();
        rules.any(|rule| rule.action == RestartAction::RestartAllContainers)
    });
    if !possible {
        return None;
    }
    Some(match phase {
        Phase::Succeeded => ConditionText::because(false, "PodCompleted"),
        Phase::Failed => ConditionText::because(false, "PodFailed"),
        _ if actions.restarting_all => ConditionText {
            status: true,
            reason: "RestartAllContainersStarted",
            message: "container exited with restart policy rule".to_owned(),
        },
        _ => ConditionText::because(false, ""),
    })
}
