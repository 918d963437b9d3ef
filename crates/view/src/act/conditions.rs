//! Setting conditions that are not the agent's own.

use jiff::Timestamp;
use rubelet_api::status::ConditionStatus;
use rubelet_node_state::pod_board::PodEntry;
use rubelet_pod_plan::intents::ExternalCondition;
use rubelet_server::{ActionError, ConditionChanges, PodPatch, PodRef};

use super::{json, not_kept};
use crate::LocalView;

/// Maximum number of foreign conditions kept per pod.
const MOST: usize = 64;

pub(super) async fn set(
    view: &LocalView,
    pod: &PodRef,
    entry: &PodEntry,
    patch: &PodPatch,
) -> Result<(), ActionError> {
    let now = view.parts.clock.now();
    let intents = &view.parts.intents;
    let set = intents.update(&entry.pod.uid, |intents| {
        // Computed under the lock of the intents, so that no other request can interfere.
        let changes = patch.conditions(&json(view, pod, entry)?)?;
        let conditions = apply(&intents.conditions, changes, now);
        if conditions.len() > MOST {
            return Err(ActionError::Conflict(format!(
                "the pod would have more than {MOST} conditions of others than the agent"
            )));
        }
        intents.conditions = conditions;
        Ok(())
    });
    set.await.map_err(|error| not_kept(&error))?
}

fn apply(
    old: &[ExternalCondition],
    changes: ConditionChanges,
    now: Timestamp,
) -> Vec<ExternalCondition> {
    let mut conditions = old.to_vec();
    conditions.retain(|condition| {
        let mut removed = changes.removed.iter();
        !removed.any(|kind| *kind == *condition.kind)
    });
    for new in changes.set {
        let status = match new.status.as_str() {
            "True" => ConditionStatus::True,
            "False" => ConditionStatus::False,
            _ => ConditionStatus::Unknown,
        };
        let known = conditions
            .iter()
            .position(|condition| *condition.kind == *new.kind);
        let same = known
            .map(|index| &conditions[index])
            .filter(|old| old.status == status);
        let condition = ExternalCondition {
            kind: new.kind.into(),
            status,
            reason: new.reason.into(),
            message: new.message.into(),
            last_transition: same
                .map(|old| old.last_transition)
                .or(new.last_transition)
                .unwrap_or(now),
        };
        match known {
            Some(index) => conditions[index] = condition,
            None => conditions.push(condition),
        }
    }
    conditions
}

#[cfg(test)]
mod tests {
    use rubelet_server::PodCondition;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    fn condition(kind: &str, status: &str, reason: &str) -> PodCondition {
        PodCondition {
            kind: kind.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: String::new(),
            last_transition: None,
        }
    }

    #[test]
    fn the_time_of_a_condition_changes_with_its_status_only() {
        let (first, second) = (at("2026-03-01T10:00:00Z"), at("2026-03-01T11:00:00Z"));
        let set = |set| ConditionChanges {
            set,
            removed: vec![],
        };
        let old = apply(
            &[],
            set(vec![
                condition("a", "False", ""),
                condition("b", "True", ""),
                PodCondition {
                    last_transition: Some(at("2026-03-01T09:00:00Z")),
                    ..condition("c", "Unknown", "")
                },
            ]),
            first,
        );
        assert_eq!(old[2].last_transition, at("2026-03-01T09:00:00Z"));
        let mut changes = set(vec![
            condition("a", "True", "Up"),
            condition("b", "True", "Still"),
        ]);
        changes.removed = vec!["c".to_owned(), "x".to_owned()];
        let new = apply(&old, changes, second);
        let rows: Vec<_> = new
            .iter()
            .map(|one| {
                (
                    &*one.kind,
                    one.status.as_str(),
                    &*one.reason,
                    one.last_transition,
                )
            })
            .collect();
        assert_eq!(
            rows,
            [("a", "True", "Up", second), ("b", "True", "Still", first)]
        );
    }
}
