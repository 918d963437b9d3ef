//! Kills a process together with its children.

use std::{
    io,
    os::fd::{AsFd, AsRawFd},
};

use rustix::process::{Pid, Signal, kill_process_group};

/// `PIDFD_SIGNAL_PROCESS_GROUP`, supported since Linux 6.9.
const PROCESS_GROUP: libc::c_uint = 4;

/// Kills the process group whose leader the descriptor refers to. The leader must be an unreaped
/// child of this process: until then its PID, which older kernels need, is not reused.
///
/// # Errors
/// The kernel returns an error. A missing group is not an error.
#[expect(
    unsafe_code,
    reason = "rustix has no binding for signals to the group of a pidfd"
)]
pub fn kill(leader: impl AsFd, number: u32) -> io::Result<()> {
    // SAFETY: the descriptor is open during the call, and no memory is passed.
    let sent = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            leader.as_fd().as_raw_fd(),
            libc::SIGKILL,
            std::ptr::null::<libc::siginfo_t>(),
            PROCESS_GROUP,
        )
    };
    if sent == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ESRCH) => Ok(()),
        Some(libc::EINVAL | libc::ENOSYS) => {
            // 0 would be the caller's own group, and 1 all processes.
            let group = i32::try_from(number)
                .ok()
                .filter(|&number| number > 1)
                .and_then(Pid::from_raw)
                .ok_or(error)?;
            match kill_process_group(group, Signal::KILL) {
                Err(rustix::io::Errno::SRCH) => Ok(()),
                other => Ok(other?),
            }
        }
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::Read,
        os::unix::process::{CommandExt, ExitStatusExt},
        process::{Command, Stdio},
    };

    use super::*;

    #[test]
    fn the_group_ends_with_what_its_leader_started() {
        let mut leader = Command::new("sh")
            .args(["-c", "sleep 1000 & echo x; wait"])
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let mut out = leader.stdout.take().unwrap();
        let mut byte = [0; 2];
        out.read_exact(&mut byte).unwrap();
        let pidfd = rustix::process::pidfd_open(
            Pid::from_raw(i32::try_from(leader.id()).unwrap()).unwrap(),
            rustix::process::PidfdFlags::empty(),
        )
        .unwrap();
        kill(&pidfd, leader.id()).unwrap();
        // The pipe ends once no process of the group holds it any more.
        assert_eq!(out.read_to_end(&mut Vec::new()).unwrap(), 0);
        assert_eq!(leader.wait().unwrap().signal(), Some(libc::SIGKILL));
        kill(&pidfd, leader.id()).unwrap();
    }
}
