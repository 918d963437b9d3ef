//! A short wait for the kernel, where it offers nothing that could be waited for.

use std::time::Duration;

use rustix::event::{Timespec, poll};

/// Blocks for about that long, at most a second.
pub(super) fn pause(time: Duration) {
    let nanos = i64::from(time.min(Duration::from_millis(999)).subsec_nanos());
    let time = Timespec {
        tv_sec: 0,
        tv_nsec: nanos,
    };
    // An interrupted wait is a shorter wait.
    let _ = poll(&mut [], Some(&time));
}
