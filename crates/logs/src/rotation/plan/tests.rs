//! Tests of `plan`.

use proptest::prelude::*;

use super::*;

const LOG: &str = "0.log";

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| format!("{LOG}{name}")).collect()
}

#[track_caller]
fn check(found: &[&str], kept: usize, remove: &[&str], compress: &[&str]) {
    let plan = plan_rotation(LOG, &names(found), kept);
    let expected = RotationPlan {
        remove: names(remove),
        compress: names(compress),
    };
    assert_eq!(plan, expected, "of {found:?}");
}

#[test]
fn all_rotated_files_but_the_newest_are_compressed_and_the_oldest_removed() {
    let [a, b, c] = [".20240101-000000", ".20240102-000000", ".20240103-000000"];
    let [a_gz, b_gz] = [".20240101-000000.gz", ".20240102-000000.gz"];
    check(&[""], 4, &[], &[]);
    check(&["", a], 4, &[], &[]);
    check(&["", a, b, c], 4, &[], &[a, b]);
    check(&["", c, b, a_gz], 4, &[], &[b]);
    check(&["", c, b, a_gz], 2, &[a_gz], &[b]);
    check(&["", c, b, a], 2, &[a], &[b]);
    check(&["", c, b_gz, a_gz], 1, &[a_gz, b_gz], &[]);
}

#[test]
fn what_a_crash_left_is_removed_and_what_is_not_of_the_log_is_not_touched() {
    let (plain, packed) = (".20240101-000000", ".20240101-000000.gz");
    let newest = ".20240102-000000";
    let half = ".20240101-000000.tmp";
    check(&["", plain, half, newest], 4, &[half], &[plain]);
    check(&["", plain, packed, newest], 4, &[plain], &[]);
    check(&["", plain, packed], 1, &[plain], &[]);
    check(
        &["", ".bak", ".gz", ".20240101-00000x", ".2024"],
        0,
        &[],
        &[],
    );
    let others = ["10.log.20240101-000000", "1.log.20240101-000000"].map(str::to_owned);
    assert_eq!(plan_rotation(LOG, &others, 0), RotationPlan::default());
}

#[test]
fn the_next_name_is_newer_than_all_others() {
    let now: Timestamp = "2024-01-31T23:59:59.9Z".parse().unwrap();
    let next = |found: &[&str]| next_suffix(LOG, &names(found), now);
    assert_eq!(next(&[""]), "20240131-235959");
    assert_eq!(next(&["", ".20240131-235958.gz"]), "20240131-235959");
    assert_eq!(next(&["", ".20240131-235959"]), "20240201-000000");
    assert_eq!(next(&["", ".20240131-235959.tmp"]), "20240201-000000");
    // The clock was set back, or another kubelet wrote local time.
    assert_eq!(next(&["", ".20250101-120000.gz"]), "20250101-120001");
    // Not a time: whoever wrote it, a rotation must go on.
    assert_eq!(next(&["", ".99999999-999999"]), "20240131-235959");
}

proptest! {
    #[test]
    fn no_newer_file_goes_before_an_older_one(
        found in proptest::collection::vec((0u32..20, any::<bool>()), 0..20),
        kept in 0usize..6,
    ) {
        let all: Vec<String> = found
            .iter()
            .map(|(at, packed)| {
                let end = if *packed { ".gz" } else { "" };
                format!("{LOG}.20240101-0000{at:02}{end}")
            })
            .collect();
        let plan = plan_rotation(LOG, &all, kept);
        let age = |name: &String| name[..LOG.len() + 16].to_owned();
        let left: std::collections::BTreeSet<String> = all
            .iter()
            .filter(|name| !plan.remove.contains(name))
            .map(age)
            .collect();
        let ages: std::collections::BTreeSet<String> = all.iter().map(age).collect();
        prop_assert!(left.len() == kept.min(ages.len()));
        prop_assert!(ages.iter().rev().take(left.len()).eq(left.iter().rev()));
        let newest = ages.last();
        prop_assert!(plan.compress.iter().all(|name| newest != Some(&age(name)) && !name.ends_with(".gz")));
    }
}
