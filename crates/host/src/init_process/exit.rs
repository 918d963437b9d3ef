//! The exit of a process, from its pidfd.

#![expect(unsafe_code, reason = "rustix has no type for what a pidfd tells")]

use std::{io, os::fd::AsFd};

use rustix::{
    io::Errno,
    ioctl::{Updater, ioctl, opcode},
};

/// `struct pidfd_info` of `linux/pidfd.h` in its first size. The kernel fills in the fields that
/// `mask` requests and that it supports.
#[repr(C)]
#[derive(Debug, Default)]
struct PidfdInfo {
    mask: u64,
    cgroup: u64,
    /// Process, its group and its parent; three pairs of real and effective, saved and file system
    /// identifiers.
    identifiers: [u32; 11],
    exit_code: i32,
}

/// `PIDFD_INFO_EXIT`.
const EXIT: u64 = 1 << 3;
/// `PIDFD_GET_INFO`.
const GET_INFO: rustix::ioctl::Opcode = opcode::read_write::<PidfdInfo>(0xFF, 11);

/// The exit code of a reaped process, 128 + signal for signals, as runtimes report it. `None` while
/// its parent has not reaped it, and on Linux 6.13 and 6.14, which do not report it.
///
/// Source of the rule: `pidfd_info()` in `fs/pidfs.c` of Linux 6.15.
///
/// # Errors
/// Linux before 6.13 does not support this ioctl.
pub fn exit_code(process: impl AsFd) -> io::Result<Option<i32>> {
    let mut info = PidfdInfo {
        mask: EXIT,
        ..PidfdInfo::default()
    };
    // SAFETY: this number names a question that reads and writes as much as a `PidfdInfo` holds.
    let question = unsafe { Updater::<GET_INFO, PidfdInfo>::new(&mut info) };
    // SAFETY: whatever the descriptor is of, the kernel stays within that size, and all bytes are valid in it.
    match unsafe { ioctl(process, question) } {
        // The process is gone, without exit information.
        Err(Errno::SRCH) => return Ok(None),
        asked => asked?,
    }
    Ok((info.mask & EXIT != 0).then(|| code_of(info.exit_code)))
}

/// The exit code in a `waitpid` status.
fn code_of(status: i32) -> i32 {
    match status & 0x7f {
        0 => status >> 8 & 0xff,
        signal => 128 + signal,
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    use super::*;

    #[test]
    fn a_status_is_taken_apart() {
        for (status, expected) in [
            (0, 0),
            (1 << 8, 1),
            (255 << 8, 255),
            (9, 137),
            (15, 143),
            // With a core dump.
            (0x80 | 6, 134),
        ] {
            assert_eq!(code_of(status), expected, "{status:#x}");
        }
    }

    fn kernel_tells() -> bool {
        let kernel = rustix::system::uname();
        let release = kernel.release().to_string_lossy().into_owned();
        let mut numbers = release
            .split(['.', '-'])
            .map_while(|part| part.parse::<u32>().ok());
        (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (6, 15)
    }

    #[test]
    fn an_end_is_reported_once_the_process_is_reaped() {
        for (script, expected) in [("exit 3", 3), ("kill -KILL $$", 137), ("true", 0)] {
            let mut child = Command::new("sh").args(["-c", script]).spawn().unwrap();
            let pid = Pid::from_child(&child);
            let process = pidfd_open(pid, PidfdFlags::empty()).unwrap();
            let asked = exit_code(&process);
            child.wait().unwrap();
            let told = exit_code(&process);
            if !rubelet_needs::applies(kernel_tells(), "Linux before 6.15 tells no exit code") {
                return;
            }
            assert_eq!(asked.unwrap(), None, "not reaped");
            assert_eq!(told.unwrap(), Some(expected), "{script}");
        }
    }

    #[test]
    fn what_is_no_process_tells_nothing() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(exit_code(&file).is_err());
    }
}
