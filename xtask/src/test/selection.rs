//! The selection of tests, as an expression for cargo-nextest.

use std::collections::BTreeSet;

use rubelet_testbed::runtime::{CONTAINERD_1_7, Kind};

use super::cluster;
use super::record::TestName;

/// All rings, in execution order.
pub(super) const ALL: [u8; 3] = [1, 2, 3];
/// The package whose tests start a runtime and the agent.
pub(super) const RUNTIME_TESTS: &str = "rubelet-testbed";
/// Programs that only test containerd: the test bed itself, containerd's lines, and an agent whose
/// external runtime is down.
const CONTAINERD_ONLY: [&str; 4] = ["containerd", "health", "lines", "runtime_restart"];
/// Programs that only test the embedded runtime, and `cgroup_v2`, which starts the runtimes of its guests by itself. `cri`
/// also runs on containerd, manually: its failures there are containerd's.
const EMBEDDED_ONLY: [&str; 3] = ["cgroup_v2", "cri", "faults"];

/// Programs that also run on the line of containerd before the newest.
const ON_LINES: [&str; 3] = ["adoption", "life", "lifecycle"];
/// The ones that do so in each run; the others take minutes.
const ON_LINES_EACH_RUN: [&str; 1] = ["adoption"];

/// Tests that run only with `--all`, or by their full name: whole programs in a virtual machine, for many minutes.
const ONLY_WITH_ALL: &str = "(binary(=cgroup_v2) & test(/^more_suites::/))";

/// The runtime of tests that need one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TestedRuntime {
    /// The embedded one.
    Embedded,
    /// The newest containerd.
    Containerd,
    /// A containerd of the line 1.7.
    Containerd17,
    /// CRI-O, only where it is asked for: Debian has none.
    Crio,
}

impl TestedRuntime {
    /// All, in the order in which they are tested.
    pub(super) const ALL: [Self; 4] = [
        Self::Embedded,
        Self::Containerd,
        Self::Containerd17,
        Self::Crio,
    ];

    /// As the command line and the environment of tests name it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Embedded => Kind::Embedded.name(),
            Self::Containerd => Kind::Containerd.name(),
            Self::Containerd17 => CONTAINERD_1_7,
            Self::Crio => Kind::Crio.name(),
        }
    }
}

/// Whether the tests of this ring start a runtime and the agent.
pub(super) fn needs_agent(ring: u8) -> bool {
    ring >= 3
}

/// The selected part of a ring.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part<'a> {
    /// The ring.
    pub(super) ring: u8,
    /// The runtime of tests that need one.
    pub(super) runtime: TestedRuntime,
    /// Also tests that take too long for each run.
    pub(super) all: bool,
    /// Whether only tests of clusters run.
    pub(super) cluster_only: bool,
    /// Only tests whose name contains this, all tests of the program of this name, or the one test
    /// of this full name.
    pub(super) filter: Option<&'a str>,
    /// The programs of ring 3.
    pub(super) programs: &'a [String],
    /// Only tests of these packages.
    pub(super) packages: Option<&'a BTreeSet<String>>,
}

/// The expression that selects it.
pub(super) fn expression(part: Part<'_>) -> String {
    let mut terms = vec![match part.ring {
        1 => "(kind(lib) | kind(bin))".to_owned(),
        2 => format!("(kind(test) & !package(={RUNTIME_TESTS}))"),
        _ => format!("(kind(test) & package(={RUNTIME_TESTS}))"),
    }];
    if needs_agent(part.ring) {
        let others = match part.runtime {
            TestedRuntime::Containerd | TestedRuntime::Containerd17 => EMBEDDED_ONLY.to_vec(),
            TestedRuntime::Embedded => CONTAINERD_ONLY.to_vec(),
            TestedRuntime::Crio => [&CONTAINERD_ONLY[..], &EMBEDDED_ONLY].concat(),
        };
        terms.push(format!("!{}", any_program(&others)));
        if part.runtime == TestedRuntime::Containerd17 {
            let programs: &[&str] = match part.all {
                true => &ON_LINES,
                false => &ON_LINES_EACH_RUN,
            };
            terms.push(any_program(programs));
        }
        if part.cluster_only {
            terms.push(any_program(&cluster::PROGRAMS));
        }
        let by_name = part.filter.and_then(TestName::parse).is_some();
        if part.runtime == TestedRuntime::Embedded && !part.all && !by_name {
            terms.push(format!("!{ONLY_WITH_ALL}"));
        }
    }
    terms.extend(part.filter.map(|filter| named(filter, &part)));
    terms.extend(part.packages.map(|names| {
        let names = names.iter().map(|name| format!("package(={name})"));
        any(names.collect())
    }));
    terms.join(" & ")
}

/// The expression for one test.
pub(super) fn only(name: &TestName) -> String {
    format!("(binary_id(={}) & test(={}))", name.binary, name.test)
}

fn named(filter: &str, part: &Part<'_>) -> String {
    if let Some(name) = TestName::parse(filter) {
        return only(&name);
    }
    let is_program = part.programs.iter().any(|program| program == filter);
    if needs_agent(part.ring) && is_program {
        return any_program(&[filter]);
    }
    format!("test(~{filter})")
}

fn any_program(names: &[&str]) -> String {
    any(names
        .iter()
        .map(|name| format!("binary(={name})"))
        .collect())
}

fn any(mut terms: Vec<String>) -> String {
    if terms.is_empty() {
        terms.push("none()".to_owned());
    }
    format!("({})", terms.join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(ring: u8) -> Part<'static> {
        Part {
            ring,
            runtime: TestedRuntime::Embedded,
            all: false,
            cluster_only: false,
            filter: None,
            programs: &[],
            packages: None,
        }
    }

    #[test]
    fn each_ring_has_its_programs() {
        assert_eq!(expression(part(1)), "(kind(lib) | kind(bin))");
        assert_eq!(
            expression(part(2)),
            "(kind(test) & !package(=rubelet-testbed))"
        );
        assert_eq!(
            expression(part(3)),
            "(kind(test) & package(=rubelet-testbed)) & !(binary(=containerd) | binary(=health) | \
             binary(=lines) | binary(=runtime_restart)) & !(binary(=cgroup_v2) & test(/^more_suites::/))"
        );
        let on_containerd = expression(Part {
            runtime: TestedRuntime::Containerd,
            cluster_only: true,
            ..part(3)
        });
        assert!(
            on_containerd.ends_with(
                " & !(binary(=cgroup_v2) | binary(=cri) | binary(=faults)) & (binary(=cluster))"
            ),
            "{on_containerd}"
        );
    }

    #[test]
    fn the_older_containerd_runs_all_of_its_programs_only_with_all() {
        for (all, programs) in [
            (false, "(binary(=adoption))"),
            (
                true,
                "(binary(=adoption) | binary(=life) | binary(=lifecycle))",
            ),
        ] {
            let found = expression(Part {
                runtime: TestedRuntime::Containerd17,
                all,
                ..part(3)
            });
            assert!(found.ends_with(&format!(" & {programs}")), "{found}");
        }
    }

    #[test]
    fn whole_programs_in_a_guest_run_with_all_or_by_name() {
        let name = "rubelet-testbed::cgroup_v2 more_suites::life";
        for (all, filter, excluded) in [
            (false, None, true),
            (false, Some("life"), true),
            (false, Some(name), false),
            (true, None, false),
        ] {
            let found = expression(Part {
                all,
                filter,
                ..part(3)
            });
            let has = found.contains(&format!("!{ONLY_WITH_ALL}"));
            assert_eq!(has, excluded, "{all} {filter:?}");
        }
    }

    #[test]
    fn packages_are_selected_by_name_and_no_name_selects_no_test() {
        for (names, term) in [
            (&["a", "b"][..], "(package(=a) | package(=b))"),
            (&[], "(none())"),
        ] {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            let found = expression(Part {
                packages: Some(&names),
                ..part(1)
            });
            assert!(found.ends_with(&format!(" & {term}")), "{found}");
        }
    }

    #[test]
    fn a_filter_is_a_program_a_full_name_or_a_part_of_a_name() {
        let programs = ["logs".to_owned()];
        for (ring, filter, term) in [
            (3, "logs", "(binary(=logs))"),
            (3, "log", "test(~log)"),
            (1, "logs", "test(~logs)"),
            (1, "a::b c::d", "(binary_id(=a::b) & test(=c::d))"),
        ] {
            let found = expression(Part {
                filter: Some(filter),
                programs: &programs,
                ..part(ring)
            });
            assert!(found.ends_with(&format!(" & {term}")), "{found}");
        }
    }
}
