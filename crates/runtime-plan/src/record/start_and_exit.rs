//! Start and exit of a container in its record. The shim's reply to a start and the exit of a
//! short-lived program arrive in any order.

use super::{ContainerRecord, ExitRecord};
use crate::state::ContainerPhase;

impl ContainerRecord {
    /// Records the start, in nanoseconds since 1970; false if it is nothing new: one is recorded
    /// already, or its exit is.
    pub fn note_start(&mut self, at: i64) -> bool {
        if self.started_at != 0 {
            return false;
        }
        self.started_at = at;
        if self.phase == ContainerPhase::Created {
            self.phase = ContainerPhase::Running;
        }
        self.exit.is_none()
    }

    /// Records the exit; false if one is recorded already.
    pub fn note_exit(&mut self, exit: ExitRecord) -> bool {
        if self.exit.is_some() {
            return false;
        }
        self.exit = Some(exit);
        self.pid = 0;
        if self.phase != ContainerPhase::Removing {
            self.phase = ContainerPhase::Exited;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn created() -> ContainerRecord {
        let record = json!({
            "id": "c", "sandbox_id": "s", "boot_id": "b", "name": "main", "attempt": 0,
            "phase": "Created", "created_at": 1, "image": "busybox",
            "user": { "uid": 0, "gid": 0 }, "stop_signal": 15, "cgroup": "/c",
        });
        serde_json::from_value(record).unwrap()
    }

    #[test]
    fn a_start_and_an_exit_count_once_in_any_order() {
        let exit = || ExitRecord::seen(0, 0, 8, false);
        let by_reply = |record: &mut ContainerRecord| record.note_start(5);
        let mut record = created();
        assert!(by_reply(&mut record));
        assert_eq!(record.phase, ContainerPhase::Running);
        // The exit says it again, with its own time.
        assert!(!record.note_start(4));
        assert!(record.note_exit(exit()) && !record.note_exit(exit()));
        assert_eq!((record.started_at, record.pid), (5, 0));

        let mut record = created();
        // The exit comes first; the reply may come before it is recorded, or after that.
        assert!(record.note_start(4));
        assert!(!by_reply(&mut record));
        assert_eq!(record.phase, ContainerPhase::Running);
        assert!(record.note_exit(exit()));
        assert!(!by_reply(&mut record));
        assert_eq!(record.phase, ContainerPhase::Exited);
        assert_eq!(record.started_at, 4);
    }

    #[test]
    fn a_start_after_the_exit_is_nothing_new() {
        let mut record = created();
        assert!(record.note_exit(ExitRecord::seen(0, 0, 8, false)));
        assert!(!record.note_start(5));
        assert_eq!(record.phase, ContainerPhase::Exited);
        assert_eq!(record.started_at, 5);
    }

    #[test]
    fn an_exit_ends_no_removal() {
        let mut record = created();
        record.phase = ContainerPhase::Removing;
        assert!(record.note_exit(ExitRecord::seen(0, 0, 8, false)));
        assert_eq!(record.phase, ContainerPhase::Removing);
    }
}
