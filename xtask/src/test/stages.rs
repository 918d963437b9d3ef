//! Stages and their durations.

use std::time::Duration;

use anyhow::{Context, Result};
use rubelet_testbed::clock;

/// The executed stages.
#[derive(Debug, Default)]
pub(super) struct Stages {
    done: Vec<(String, Duration)>,
}

impl Stages {
    /// Runs one stage; its failure names it.
    pub(super) fn run<T>(&mut self, name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        println!("=== {name}");
        let start = clock::now();
        let result = work();
        let time = start.elapsed();
        let seconds = time.as_secs_f64();
        match &result {
            Ok(_) => println!("=== {name}: good ({seconds:.1} s)"),
            Err(_) => println!("=== {name}: FAILED ({seconds:.1} s)"),
        }
        self.done.push((name.to_owned(), time));
        result.with_context(|| format!("stage `{name}` failed"))
    }

    /// Prints the duration of each stage.
    pub(super) fn print(&self) {
        println!("=== times");
        for (name, time) in &self.done {
            println!("{:>8.1} s  {name}", time.as_secs_f64());
        }
    }
}
