//! Labels that a node may set on itself.
//!
//! Source of the rule: `ValidateKubeletFlags` and `k8s.io/kubelet/pkg/apis` of Kubernetes 1.36.

use crate::validation::{label_key_problem, label_value_problem};
use serde_json::Value;

const ALLOWED: [&str; 11] = [
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];
/// Prefixes under which, and under whose subdomains, any label is allowed.
const ALLOWED_PREFIXES: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];

/// The problem with the labels of `--node-labels`, if any.
pub(super) fn problem(labels: &Value) -> Option<String> {
    labels
        .as_object()
        .into_iter()
        .flatten()
        .find_map(|(key, value)| {
            let value = value.as_str().unwrap_or_default();
            if let Some(problem) = label_key_problem(key) {
                return Some(format!("{key:?}: {problem}"));
            }
            if let Some(problem) = label_value_problem(value) {
                return Some(format!("{key}={value}: {problem}"));
            }
            if is_reserved(key) && !is_allowed(key) {
                let message = "under kubernetes.io and k8s.io only these are allowed: ";
                let allowed = ALLOWED.join(", ");
                let prefixes = ALLOWED_PREFIXES.join("/* and ");
                return Some(format!("{key:?}: {message}{allowed}, and {prefixes}/*"));
            }
            None
        })
}

fn prefix(key: &str) -> &str {
    key.split_once('/').map_or("", |(prefix, _)| prefix)
}

fn is_within(prefix: &str, domain: &str) -> bool {
    prefix
        .strip_suffix(domain)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

fn is_reserved(key: &str) -> bool {
    is_within(prefix(key), "kubernetes.io") || is_within(prefix(key), "k8s.io")
}

fn is_allowed(key: &str) -> bool {
    ALLOWED.contains(&key)
        || ALLOWED_PREFIXES
            .iter()
            .any(|domain| is_within(prefix(key), domain))
}

#[cfg(test)]
mod tests {
    use super::problem;
    use serde_json::json;

    #[test]
    fn reserved_labels_are_refused() {
        for (key, value, allowed) in [
            ("role", "web", true),
            ("example.com/role", "", true),
            ("topology.kubernetes.io/zone", "a", true),
            ("node.kubernetes.io/anything", "a", true),
            ("x.node.kubernetes.io/anything", "a", true),
            ("node-role.kubernetes.io/worker", "", false),
            ("k8s.io/x", "", false),
            ("mykubernetes.io/x", "", true),
            ("Bad.Prefix/x", "", false),
            ("-x", "", false),
            ("x", "a b", false),
        ] {
            assert_eq!(
                problem(&json!({ key: value })).is_none(),
                allowed,
                "{key}={value}"
            );
        }
    }
}
