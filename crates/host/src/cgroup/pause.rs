//! A short sleep for states of the kernel without a notification.

use std::time::Duration;

use rustix::event::{Timespec, poll};

/// Blocks for about this time, at most a second.
pub(super) fn pause(time: Duration) {
    let nanos = i64::from(time.min(Duration::from_millis(999)).subsec_nanos());
    let time = Timespec {
        tv_sec: 0,
        tv_nsec: nanos,
    };
    // An interrupted sleep is a shorter sleep.
    let _ = poll(&mut [], Some(&time));
}
