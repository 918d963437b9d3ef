//! The reasons why the node is not ready for pods.
//!
//! Source of the rules and words: `ReadyCondition` and `pkg/kubelet/runtime.go` of Kubernetes 1.36.

use std::{sync::Arc, time::Duration};

use super::object::Texts;

/// Time after which a runtime that does not respond counts as down: it may only be restarting.
pub(crate) const DOWN_AFTER: Duration = Duration::from_secs(30);

/// The state of the runtime.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuntimeHealth {
    /// True if it has ever responded.
    pub answered: bool,
    /// How long it has not responded; `None` while it does.
    pub silent: Option<Duration>,
    /// The reason why it is not ready.
    pub problem: Option<Arc<str>>,
    /// The reason why its network is not ready.
    pub network_problem: Option<Arc<str>>,
}

impl RuntimeHealth {
    /// The problems of the runtime that keep pods from running. `pleg` is the reason why the PLEG
    /// is not healthy, in upstream's words.
    #[must_use]
    pub fn problems(&self, pleg: Option<String>) -> Vec<String> {
        let mut problems = Vec::new();
        if !self.answered {
            let unknown = "container runtime status check may not have completed yet";
            problems.push(self.problem.as_deref().unwrap_or(unknown).to_owned());
        }
        problems.extend(pleg);
        if self.answered
            && let Some(problem) = &self.problem
            && self.silent.is_none_or(|silent| silent >= DOWN_AFTER)
        {
            problems.push(problem.to_string());
        }
        match (&self.network_problem, self.answered) {
            (Some(problem), _) => problems.push(problem.to_string()),
            (None, false) => problems.push("network state unknown".to_owned()),
            (None, true) => {}
        }
        problems
    }
}

/// The required capacities that are missing.
pub(super) fn missing_capacity(capacity: &Texts, local_storage: bool) -> Option<String> {
    let storage = local_storage.then_some("ephemeral-storage");
    let missing: Vec<&str> = ["cpu", "memory", "pods"]
        .into_iter()
        .chain(storage)
        .filter(|name| !capacity.contains_key(*name))
        .collect();
    (!missing.is_empty()).then(|| {
        format!(
            "missing node capacity for resources: {}",
            missing.join(", ")
        )
    })
}

/// Joins problems into one text: each once, in brackets if there are two or more.
pub(super) fn joined(problems: &[String]) -> Option<String> {
    let mut seen: Vec<&str> = Vec::new();
    for problem in problems {
        if !seen.contains(&problem.as_str()) {
            seen.push(problem);
        }
    }
    match seen.as_slice() {
        [] => None,
        [one] => Some((*one).to_owned()),
        several => Some(format!("[{}]", several.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_is_named() {
        let well = RuntimeHealth {
            answered: true,
            ..RuntimeHealth::default()
        };
        let silent = |seconds| RuntimeHealth {
            silent: Some(Duration::from_secs(seconds)),
            problem: Some("container runtime is down: refused".into()),
            ..well.clone()
        };
        let not_ready = RuntimeHealth {
            problem: Some("container runtime not ready".into()),
            network_problem: Some("network not ready".into()),
            ..well.clone()
        };
        let stuck = || Some("PLEG is not healthy: pleg was last seen active 4m0s ago".to_owned());
        for (health, pleg, expected) in [
            (well.clone(), None, None),
            (silent(29), None, None),
            (silent(30), None, Some("container runtime is down: refused")),
            (
                not_ready,
                None,
                Some("[container runtime not ready, network not ready]"),
            ),
            (
                well,
                stuck(),
                Some("PLEG is not healthy: pleg was last seen active 4m0s ago"),
            ),
            (
                RuntimeHealth::default(),
                None,
                Some(
                    "[container runtime status check may not have completed yet, \
                     network state unknown]",
                ),
            ),
        ] {
            let problems = health.problems(pleg);
            assert_eq!(joined(&problems).as_deref(), expected, "{health:?}");
        }
    }

    #[test]
    fn one_problem_said_twice_is_said_once() {
        let problems = ["a".to_owned(), "a".to_owned()];
        assert_eq!(joined(&problems).as_deref(), Some("a"));
    }

    #[test]
    fn a_node_without_a_basic_resource_is_not_ready() {
        let capacity = Texts::from([("cpu".into(), "1".into()), ("pods".into(), "1".into())]);
        assert_eq!(
            missing_capacity(&capacity, true).as_deref(),
            Some("missing node capacity for resources: memory, ephemeral-storage")
        );
    }
}
