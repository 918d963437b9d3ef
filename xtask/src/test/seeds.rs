//! Seeds of the random lives of pods in a run: each commit uses different ones.

use std::fmt;
use std::path::Path;
use std::process::Command;

use crate::git;

/// The variables of `crates/kubelet/src/tests/random/seeds.rs`.
const FIRST: &str = "RUBELET_FIRST_SEED";
const EACH: &str = "RUBELET_SEEDS";
/// Tests over which the lives are spread.
const TESTS: u64 = 8;
/// Lives of each test, in each run and with `--all`.
const FEW: u64 = 250;
const MANY: u64 = 2500;

/// The seeds of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seeds {
    pub(super) first: u64,
    pub(super) each: u64,
}

impl Seeds {
    /// With `all`, always the same large range; otherwise the range after that of the previous
    /// commit.
    pub(super) fn of(root: &Path, all: bool) -> Self {
        let count = git::output(root, &["rev-list", "--count", "HEAD"]);
        // A source archive has no history.
        let commits = count.ok().and_then(|text| text.parse().ok());
        Self::at(commits.unwrap_or(0), all)
    }

    fn at(commits: u64, all: bool) -> Self {
        let (first, each) = match all {
            true => (0, MANY),
            false => (commits * FEW * TESTS, FEW),
        };
        Self { first, each }
    }

    /// Sets the environment of tests.
    pub(super) fn set(self, command: &mut Command) {
        // A seed that is set in the environment is replayed.
        for (name, value) in [(FIRST, self.first), (EACH, self.each)] {
            if std::env::var_os(name).is_none() {
                command.env(name, value.to_string());
            }
        }
    }
}

impl fmt::Display for Seeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, each } = self;
        let last = first + each * TESTS - 1;
        write!(f, "random lives: seeds {first} to {last}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_advance_with_each_commit() {
        let (one, two) = (Seeds::at(7, false), Seeds::at(8, false));
        assert_eq!(one.to_string(), "random lives: seeds 14000 to 15999");
        assert_eq!(two.first, 16_000);
        assert_eq!(
            Seeds::at(7, true).to_string(),
            "random lives: seeds 0 to 19999"
        );
    }
}
