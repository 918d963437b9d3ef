//! Pressure on the resources of a node, and how long it lasts.

use std::time::Duration;

use super::signal::PressureKind;

/// The resources under pressure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pressure {
    /// Memory.
    pub memory: bool,
    /// Bytes or inodes of a file system.
    pub disk: bool,
    /// Processes.
    pub pid: bool,
}

/// The last time of each kind of pressure. Times count from any fixed moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LastShortages {
    seen: [Option<Duration>; 3],
}

impl LastShortages {
    /// Notes a shortage at `at`.
    pub(crate) fn saw(&mut self, kind: PressureKind, at: Duration) {
        self.seen[kind as usize] = Some(at);
    }

    /// The pressure now or within the last `transition`.
    pub(crate) fn pressure(&self, transition: Duration, at: Duration) -> Pressure {
        let under = |kind: PressureKind| {
            self.seen[kind as usize]
                // `seen == at`: a transition period of 0 must not hide a present shortage.
                .is_some_and(|seen| seen == at || at.saturating_sub(seen) < transition)
        };
        Pressure {
            memory: under(PressureKind::Memory),
            disk: under(PressureKind::Disk),
            pid: under(PressureKind::Pid),
        }
    }
}
