//! The kernel's messages about processes that it killed because the machine is out of memory.
//!
//! Source of the event: `pkg/kubelet/oom` of Kubernetes 1.36; of the messages: `mm/oom_kill.c` of Linux 5.0
//! and later. A cgroup that is out of memory is not an event of the node: its container shows it.

use std::time::Duration;

/// The reason of the event.
pub const SYSTEM_OOM: &str = "SystemOOM";

/// How each such message begins. A process can put its name into messages of the kernel, but no name is as
/// long as this.
const BEGINNINGS: [&str; 2] = [
    "Out of memory: Killed process ",
    "Out of memory (oom_kill_allocating_task): Killed process ",
];
/// What follows the name of the process.
const AFTER_NAME: &str = ") total-vm:";
/// Kills that follow each other this closely are one: the kernel kills the whole cgroup of its victim if
/// `memory.oom.group` says so.
const ONE_OOM: Duration = Duration::from_millis(100);

/// A process that was killed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OomVictim {
    /// Its PID as the machine sees it.
    pub pid: u32,
    /// Its name.
    pub name: String,
}

impl OomVictim {
    /// The victim that a message of the kernel is about, if the whole machine was out of memory.
    #[must_use]
    pub fn of_message(message: &str) -> Option<Self> {
        let rest = BEGINNINGS
            .iter()
            .find_map(|beginning| message.strip_prefix(beginning))?;
        let (pid, rest) = rest.split_once(" (")?;
        // The name itself may hold brackets.
        let (name, _) = rest.rsplit_once(AFTER_NAME)?;
        Some(Self {
            pid: pid.parse().ok()?,
            name: name.to_owned(),
        })
    }

    /// The message of the event.
    #[must_use]
    pub fn event_message(&self) -> String {
        let Self { pid, name } = self;
        match name.is_empty() {
            true => "System OOM encountered".to_owned(),
            false => format!("System OOM encountered, victim process: {name}, pid: {pid}"),
        }
    }
}

/// Finds the kills that are to be reported.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SystemOoms {
    last: Option<Duration>,
}

impl SystemOoms {
    /// The victim to report, of a message that the kernel wrote this long after the boot.
    pub fn observe(&mut self, message: &str, at: Duration) -> Option<OomVictim> {
        let victim = OomVictim::of_message(message)?;
        let before = self.last.replace(at);
        let is_same = before.is_some_and(|before| at.saturating_sub(before) < ONE_OOM);
        (!is_same).then_some(victim)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REST: &str = "total-vm:48716kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB, UID:0 \
                        pgtables:100kB oom_score_adj:0";

    #[test]
    fn victims_of_the_whole_machine_are_found_and_nothing_else() {
        let of = |pid, name: &str| {
            Some(OomVictim {
                pid,
                name: name.to_owned(),
            })
        };
        for (message, expected) in [
            (
                "Out of memory: Killed process 77 (stress) {}",
                of(77, "stress"),
            ),
            (
                "Out of memory (oom_kill_allocating_task): Killed process 77 (sh) {}",
                of(77, "sh"),
            ),
            // Names that are made to deceive.
            (
                "Out of memory: Killed process 77 (a) (b c) {}",
                of(77, "a) (b c"),
            ),
            (
                "Out of memory: Killed process 77 (1 (init) {}",
                of(77, "1 (init"),
            ),
            ("Out of memory: Killed process 77 () {}", of(77, "")),
            (
                "Out of memory: Killed process 77 (\\x0a) {}",
                of(77, "\\x0a"),
            ),
            (
                "Memory cgroup out of memory: Killed process 77 (stress) {}",
                None,
            ),
            (
                "oom_reaper: reaped process 77 (stress), now anon-rss:0kB",
                None,
            ),
            ("Out of memory: Ki[5]: segfault at 0 ip 0", None),
            (" Out of memory: Killed process 77 (stress) {}", None),
            ("Out of memory: Killed process -1 (stress) {}", None),
            (
                "Out of memory: Killed process 99999999999 (stress) {}",
                None,
            ),
            ("Out of memory: Killed process 77 (stress)", None),
            ("Out of memory: Killed process 77", None),
            ("", None),
        ] {
            let message = message.replace("{}", REST);
            assert_eq!(OomVictim::of_message(&message), expected, "{message}");
        }
    }

    #[test]
    fn the_event_names_the_process() {
        let message = |name: &str| {
            let name = name.to_owned();
            OomVictim { pid: 77, name }.event_message()
        };
        assert_eq!(
            message("stress"),
            "System OOM encountered, victim process: stress, pid: 77"
        );
        assert_eq!(message(""), "System OOM encountered");
    }

    #[test]
    fn a_group_that_is_killed_is_reported_once() {
        let mut ooms = SystemOoms::default();
        let mut pid = 0;
        let mut kill = |millis| {
            pid += 1;
            let message = format!("Out of memory: Killed process {pid} (a) {REST}");
            let found = ooms.observe(&message, Duration::from_millis(millis));
            found.map(|victim| victim.pid)
        };
        assert_eq!(kill(5000), Some(1));
        assert_eq!(kill(5001), None);
        assert_eq!(kill(5090), None);
        assert_eq!(kill(5180), None, "the group is large");
        assert_eq!(kill(6000), Some(5));
    }
}
