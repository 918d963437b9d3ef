//! Dependencies between crates: only those in the table are allowed.

use serde_json::Value;

use super::Finding;
use super::edges::{self, CRATE_RULES, CrateRule, rule_of};

const ADD_OR_DROP: &str =
    "use a crate of a lower layer, or add the dependency to xtask/src/tidy/edges.rs";
const REMOVE_EDGE: &str = "remove it from xtask/src/tidy/edges.rs";
const ADD_RULE: &str = "add the crate, its layer and its dependencies to xtask/src/tidy/edges.rs";

/// All dependencies and crates that the table does not contain, and all edges of the table that no
/// crate has.
pub(super) fn check(metadata: &Value) -> Vec<Finding> {
    let packages = metadata["packages"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    packages.iter().flat_map(check_package).collect()
}

fn check_package(package: &Value) -> Vec<Finding> {
    let name = short(package["name"].as_str().unwrap_or_default());
    let finding = |rule: String, remedy| Finding {
        file: manifest_of(name),
        line: 0,
        rule,
        remedy,
    };
    let Some(crate_rule) = rule_of(name) else {
        return vec![finding(
            format!("the crate {name} is not in the table of crates"),
            ADD_RULE,
        )];
    };
    let dependencies = workspace_dependencies(package);
    let unlisted = dependencies
        .iter()
        .filter(|(used, for_tests)| !allowed(crate_rule, used, *for_tests));
    let unlisted = unlisted.map(|&(used, for_tests)| {
        let what = if for_tests {
            "in its tests uses"
        } else {
            "uses"
        };
        let place = rule_of(used).map_or_else(
            || "no layer".to_owned(),
            |used| format!("layer {}", used.layer),
        );
        let rule = format!(
            "{name} (layer {}) {what} {used} ({place}), which edges.rs does not allow",
            crate_rule.layer
        );
        finding(rule, ADD_OR_DROP)
    });
    let unused = unused_edges(crate_rule, &dependencies).map(|(used, for_tests)| {
        let what = if for_tests {
            "its tests may use"
        } else {
            "may use"
        };
        let rule = format!("{name}: {what} {used}, which its manifest does not name");
        finding(rule, REMOVE_EDGE)
    });
    unlisted.chain(unused).collect()
}

/// The crates of the workspace that the package uses, and whether only its tests do.
fn workspace_dependencies(package: &Value) -> Vec<(&str, bool)> {
    let dependencies = package["dependencies"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    dependencies
        .iter()
        // Crates of the workspace have a path; all others come from a registry.
        .filter(|dependency| dependency["path"].is_string())
        .map(|dependency| {
            let used = short(dependency["name"].as_str().unwrap_or_default());
            (used, dependency["kind"] == "dev")
        })
        .collect()
}

/// The allowed edges that the crate does not have, and whether they are those of its tests.
fn unused_edges(
    crate_rule: &CrateRule,
    dependencies: &[(&str, bool)],
) -> impl Iterator<Item = (&'static str, bool)> {
    let unused = move |edges: &'static [&'static str], for_tests: bool| {
        edges
            .iter()
            .map(move |used| (*used, for_tests))
            .filter(move |edge| !dependencies.contains(edge))
    };
    unused(crate_rule.uses, false).chain(unused(crate_rule.tests_use, true))
}

fn allowed(crate_rule: &CrateRule, used: &str, for_tests: bool) -> bool {
    crate_rule.uses.contains(&used)
        || (for_tests && (used == edges::ALL_TESTS_USE || crate_rule.tests_use.contains(&used)))
}

fn short(name: &str) -> &str {
    name.strip_prefix("rubelet-").unwrap_or(name)
}

fn manifest_of(name: &str) -> String {
    if name == "xtask" || !CRATE_RULES.iter().any(|rule| rule.name == name) {
        return format!("{name}/Cargo.toml");
    }
    format!("crates/{name}/Cargo.toml")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn package(name: &str, used: &str, kind: &Value) -> Value {
        json!({ "packages": [{
            "name": name,
            "dependencies": [
                { "name": used, "kind": kind, "path": "/x" },
                { "name": "tokio", "kind": null },
            ],
        }]})
    }

    #[test]
    fn dependencies_are_checked_against_the_table_and_tests_may_use_more() {
        for (name, used, kind, expected) in [
            ("rubelet-api", "rubelet-base", Value::Null, 0),
            ("rubelet-base", "rubelet-api", Value::Null, 1),
            ("rubelet-server", "rubelet-kubelet", Value::Null, 1),
            ("rubelet-kubelet", "rubelet-sim", json!("dev"), 0),
            ("rubelet-kubelet", "rubelet-sim", Value::Null, 1),
            ("rubelet-base", "rubelet-base", json!("dev"), 1),
            ("xtask", "rubelet-testbed", Value::Null, 0),
            ("rubelet-new", "rubelet-base", Value::Null, 1),
        ] {
            let mut found = check(&package(name, used, &kind));
            found.retain(|finding| finding.remedy != REMOVE_EDGE);
            assert_eq!(found.len(), expected, "{name} -> {used}: {found:?}");
        }
    }

    #[test]
    fn an_allowed_edge_that_no_manifest_has_is_found() {
        let rules = |name: &str, used: &str, kind: &Value| {
            let found = check(&package(name, used, kind)).into_iter();
            found.map(|finding| finding.rule).collect::<Vec<_>>()
        };
        let none: [&str; 0] = [];
        assert_eq!(rules("rubelet-cri", "rubelet-base", &Value::Null), none);
        let found = rules("rubelet-api", "rubelet-base", &Value::Null);
        assert_eq!(
            found,
            ["api: may use yaml, which its manifest does not name"]
        );
        let found = rules("rubelet-cri-grpc", "rubelet-cri", &Value::Null);
        let expected = "cri-grpc: its tests may use cri-grpc, which its manifest does not name";
        assert_eq!(found, [expected]);
    }

    #[test]
    fn a_finding_names_the_manifest_and_the_dependency() {
        let found = check(&package("rubelet-base", "rubelet-api", &Value::Null));
        assert_eq!(found[0].file, "crates/base/Cargo.toml");
        let rule = "base (layer 0) uses api (layer 1), which edges.rs does not allow";
        assert_eq!(found[0].rule, rule);
    }
}
