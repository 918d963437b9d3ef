//! The support matrix and the schema of a v1 Pod name the same fields.

mod recorder;

use rubelet_api::fields::{Support, markdown, row, rows};
use rubelet_base::parity::ParityVerdict;

/// Init containers have the rows of the others.
fn in_table(leaf: &str) -> String {
    leaf.replacen("spec.initContainers[]", "spec.containers[]", 1)
}

/// The row of this leaf, or of a part of the schema around it.
fn covering_row(leaf: &str) -> Option<&'static str> {
    let ends = leaf.match_indices(['.', '[', '{']).map(|(end, _)| end);
    let closings = leaf.match_indices([']', '}']).map(|(end, _)| end + 1);
    ends.chain(closings)
        .chain([leaf.len()])
        .find_map(|end| row(&leaf[..end]))
        .map(|row| row.path)
}

#[test]
fn every_field_of_the_schema_has_a_row() {
    let leaves = recorder::leaves();
    assert!(
        leaves.len() > 800,
        "the schema has only {} fields",
        leaves.len()
    );
    let missing: Vec<&String> = leaves
        .iter()
        .filter(|leaf| covering_row(&in_table(leaf)).is_none())
        .collect();
    assert!(
        missing.is_empty(),
        "in no row of the support matrix: {missing:#?}"
    );
}

#[test]
fn every_row_is_a_field_of_the_schema() {
    let leaves = recorder::leaves();
    let unknown: Vec<&str> = rows()
        .iter()
        .map(|row| row.path)
        .filter(|path| {
            !leaves.iter().any(|leaf| {
                leaf.strip_prefix(path)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[', '{']))
            })
        })
        .collect();
    assert!(
        unknown.is_empty(),
        "in the support matrix, and no field: {unknown:#?}"
    );
}

#[test]
fn a_supported_row_stands_for_one_field_only() {
    let leaves = recorder::leaves();
    for row in rows() {
        if matches!(row.support, Support::Full | Support::Partial(_)) {
            assert!(
                leaves.contains(row.path),
                "{} has fields below it that need rows",
                row.path
            );
        }
    }
}

#[test]
fn rows_are_sorted_and_no_row_stands_below_another() {
    for pair in rows().windows(2) {
        assert!(
            pair[0].path < pair[1].path,
            "{} stands before {}",
            pair[0].path,
            pair[1].path
        );
    }
    for row in rows() {
        assert_eq!(covering_row(row.path), Some(row.path));
    }
}

#[test]
fn the_page_for_users_is_up_to_date() {
    let page = include_str!("../../../../docs/fields.md");
    assert!(
        page == markdown(),
        "run: cargo run -q -p rubelet-api --example fields > docs/fields.md"
    );
}

/// Every field of a `PodSpec` and of what is inside of it, one a line. Init containers have those of
/// the others, and templates of volume claims have the metadata of every object.
/// Source: `k8s.io/api/core/v1/types.go` of Kubernetes 1.36.
const POD_SPEC: &str = include_str!("pod-spec-1.36.txt");

#[test]
fn every_field_that_kubernetes_has_is_in_the_schema_and_in_a_row() {
    let leaves = recorder::leaves();
    let missing: Vec<&str> = POD_SPEC
        .lines()
        .filter(|path| !leaves.contains(*path) || covering_row(path).is_none())
        .collect();
    assert!(missing.is_empty(), "not known here: {missing:#?}");
}

#[test]
fn a_field_that_kubernetes_1_36_does_not_have_is_said_to_differ() {
    let known: std::collections::BTreeSet<&str> = POD_SPEC.lines().collect();
    let unknown: Vec<String> = recorder::leaves()
        .iter()
        .filter(|leaf| leaf.starts_with("spec.") && !leaf.contains("Template.metadata."))
        .map(|leaf| in_table(leaf))
        .filter(|leaf| !known.contains(leaf.as_str()))
        .filter(|leaf| {
            let row = covering_row(leaf).and_then(row);
            // Whole volumes and sources have one row; the owner of a file in them is newer.
            let whole = leaf.ends_with("ser") || leaf.starts_with("spec.ephemeralContainers[]");
            !whole && row.is_none_or(|row| row.verdict().0 != ParityVerdict::Differs)
        })
        .collect();
    assert!(
        unknown.is_empty(),
        "newer than Kubernetes 1.36, and not said to differ: {unknown:#?}"
    );
}
