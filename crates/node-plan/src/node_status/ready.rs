//! Whether the node is ready for pods, and if not, why.
//!
//! Source of the rules and words: `ReadyCondition` and `pkg/kubelet/runtime.go` of Kubernetes 1.36.

use std::{sync::Arc, time::Duration};

use super::object::Texts;

/// A runtime that does not answer counts as down after this time: it may only be restarting.
pub const DOWN_AFTER: Duration = Duration::from_secs(30);

/// The state of the runtime.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuntimeHealth {
    /// Whether it ever answered.
    pub answered: bool,
    /// For how long it has not answered; `None` while it does.
    pub silent: Option<Duration>,
    /// Why it can't be used.
    pub problem: Option<Arc<str>>,
    /// Why its network can't be used.
    pub network_problem: Option<Arc<str>>,
}

impl RuntimeHealth {
    /// Why no pods can run, as far as the runtime is concerned; `pleg` is the reason why the agent
    /// does not see changes of containers, in upstream's words.
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

/// What of the capacity that every node must have is missing.
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

/// Several problems in one text: each once, in brackets if there are two or more.
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
