//! Stages, their durations and what failed.

use std::time::Duration;

use anyhow::Result;
use rubelet_testbed::clock;

/// The result of a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
enum StageEnd {
    Good,
    Failed(String),
    /// It could not run, for this reason.
    NotRun(String),
}

/// The stages so far.
#[derive(Debug)]
pub(super) struct Stages {
    done: Vec<(String, Duration, StageEnd)>,
    /// Returns why no further stage can run, such as a full disk.
    obstacle: fn() -> Option<String>,
}

impl Stages {
    /// No stages yet. `obstacle` is called before each stage and after each failed one.
    pub(super) fn new(obstacle: fn() -> Option<String>) -> Self {
        Self {
            done: Vec::new(),
            obstacle,
        }
    }

    /// Runs one stage; `None` if it failed, which does not stop other stages.
    pub(super) fn run<T>(&mut self, name: &str, work: impl FnOnce() -> Result<T>) -> Option<T> {
        if let Some(obstacle) = (self.obstacle)() {
            self.not_run(name, &obstacle);
            return None;
        }
        println!("=== {name}");
        let start = clock::now();
        let result = work();
        let time = start.elapsed();
        let seconds = time.as_secs_f64();
        let (end, value) = match result {
            Ok(value) => {
                println!("=== {name}: good ({seconds:.1} s)");
                (StageEnd::Good, Some(value))
            }
            Err(error) => {
                let obstacle = (self.obstacle)().map(|obstacle| format!("{obstacle}: "));
                let error = format!("{}{error:#}", obstacle.unwrap_or_default());
                println!("{error}");
                println!("=== {name}: FAILED ({seconds:.1} s)");
                (StageEnd::Failed(error), None)
            }
        };
        self.done.push((name.to_owned(), time, end));
        value
    }

    /// Records that a stage can't run because `without` failed.
    pub(super) fn cannot_run(&mut self, name: &str, without: &str) {
        self.not_run(name, &format!("`{without}` failed"));
    }

    fn not_run(&mut self, name: &str, because: &str) {
        println!("=== {name}: NOT RUN, because {because}");
        let end = StageEnd::NotRun(because.to_owned());
        self.done.push((name.to_owned(), Duration::ZERO, end));
    }

    /// Whether all stages succeeded.
    pub(super) fn all_good(&self) -> bool {
        self.done.iter().all(|(_, _, end)| *end == StageEnd::Good)
    }

    /// A line for each stage that did not succeed.
    pub(super) fn failures(&self) -> impl Iterator<Item = String> {
        self.done.iter().filter_map(|(name, _, end)| match end {
            StageEnd::Good => None,
            StageEnd::Failed(error) => {
                let error = error.lines().take(20).collect::<Vec<_>>().join("\n    ");
                Some(format!("=== {name}: FAILED: {error}"))
            }
            StageEnd::NotRun(because) => {
                Some(format!("=== {name}: FAILED: not run, because {because}"))
            }
        })
    }

    /// A line with the duration of each stage, and their sum.
    pub(super) fn times(&self) -> impl Iterator<Item = String> {
        let sum: Duration = self.done.iter().map(|(_, time, _)| *time).sum();
        let each = self.done.iter().map(|(name, time, _)| (&**name, *time));
        each.chain([("all", sum)])
            .map(|(name, time)| format!("{:>8.1} s  {name}", time.as_secs_f64()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;

    #[test]
    fn a_failed_stage_stops_no_other_and_is_named_at_the_end() {
        let mut stages = Stages::new(|| None);
        assert_eq!(stages.run("one", || Ok(1)), Some(1));
        assert!(stages.all_good());
        assert_eq!(stages.run::<()>("two", || bail!("it broke")), None);
        stages.cannot_run("three", "two");
        assert_eq!(stages.run("four", || Ok(4)), Some(4));
        assert!(!stages.all_good());
        assert_eq!(
            stages.failures().collect::<Vec<_>>(),
            [
                "=== two: FAILED: it broke",
                "=== three: FAILED: not run, because `two` failed"
            ]
        );
        assert_eq!(stages.times().count(), 5);
    }

    #[test]
    fn on_a_full_disk_no_stage_runs_and_the_reason_is_reported() {
        let mut stages = Stages::new(|| Some("the disk is full".to_owned()));
        assert_eq!(stages.run("one", || Ok(1)), None);
        assert_eq!(
            stages.failures().collect::<Vec<_>>(),
            ["=== one: FAILED: not run, because the disk is full"]
        );
    }
}
