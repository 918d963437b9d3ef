//! The owner process of an instance, identified reliably even if PIDs are reused.

use std::fmt;

use anyhow::{Context, Result};

use crate::proc;

/// A PID with the start time of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    pid: u32,
    start_ticks: u64,
}

impl Owner {
    /// This process.
    ///
    /// # Errors
    /// When procfs can't be read.
    pub fn me() -> Result<Self> {
        let pid = std::process::id();
        let stat = proc::Stat::of(pid).context("cannot read this process's own state")?;
        Ok(Self {
            pid,
            start_ticks: stat.start_ticks,
        })
    }

    /// Parses the output of [`Owner`]'s `Display`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (pid, start_ticks) = text.trim().split_once(' ')?;
        Some(Self {
            pid: pid.parse().ok()?,
            start_ticks: start_ticks.parse().ok()?,
        })
    }

    /// Whether this very process still runs.
    #[must_use]
    pub fn is_alive(self) -> bool {
        proc::Stat::of(self.pid)
            .is_some_and(|stat| stat.start_ticks == self.start_ticks && stat.state != 'Z')
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.pid, self.start_ticks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_after_a_round_trip() {
        let me = Owner::me().unwrap();
        assert!(me.is_alive());
        assert_eq!(Owner::parse(&me.to_string()), Some(me));
    }

    #[test]
    fn another_process_with_the_same_id_is_not_the_owner() {
        let me = Owner::me().unwrap();
        assert!(
            !Owner {
                start_ticks: me.start_ticks + 1,
                ..me
            }
            .is_alive()
        );
    }
}
