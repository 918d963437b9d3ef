//! One process per name in a network namespace: a lock for resources that all processes of the
//! namespace share, such as an interface.
//!
//! The lock is a listening socket in the abstract namespace of unix(7), which belongs to the
//! network namespace. It leaves no file and is released with its process. Any process may bind such
//! a name, so a holder only counts if it runs as the same user. A child between fork and exec has
//! its parent's descriptors, so the lock is retried for [`PATIENCE`].

use std::{io, os::fd::OwnedFd};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::{
        AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
        sockopt::socket_peercred,
    },
    process::geteuid,
};

use crate::lock::PATIENCE;

/// Number of tries for the name: it may be released and taken by others meanwhile.
const ATTEMPTS: usize = 3;

/// Held until it is dropped, or the process dies.
#[derive(Debug)]
pub struct NetLock {
    _held: OwnedFd,
}

/// Why a name can't be locked.
#[derive(Debug, thiserror::Error)]
pub enum NetLockError {
    /// Another process has it.
    #[error("process {holder} has it")]
    Taken {
        /// Its PID; `unknown` if the kernel does not report it.
        holder: String,
    },
    /// A process of another user has it, which proves nothing.
    #[error("a process of the user {uid} has it")]
    Foreign {
        /// The UID.
        uid: u32,
    },
    /// The kernel returns an error.
    #[error(transparent)]
    Socket(#[from] io::Error),
}

/// Locks a name of at most 100 bytes.
///
/// # Errors
/// Another process still has it after [`PATIENCE`], or no such socket can be created.
pub fn take(name: &str) -> Result<NetLock, NetLockError> {
    let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).map_err(io::Error::from)?;
    for _ in 0..ATTEMPTS {
        let own = stream()?;
        match bind(&own, &address) {
            Ok(()) => {
                // Connections are never accepted: a client that connects sees the end of this
                // process.
                listen(&own, 16).map_err(io::Error::from)?;
                return Ok(NetLock { _held: own });
            }
            Err(Errno::ADDRINUSE) => {}
            Err(error) => return Err(io::Error::from(error).into()),
        }
        let other = stream()?;
        match connect(&other, &address) {
            Ok(()) => {}
            // It was just released, or is not complete yet.
            Err(Errno::CONNREFUSED) => continue,
            // The backlog is full.
            Err(_) => break,
        }
        let holder = socket_peercred(&other).map_err(io::Error::from)?;
        if holder.uid != geteuid() {
            let uid = holder.uid.as_raw();
            return Err(NetLockError::Foreign { uid });
        }
        if !ends(&other)? {
            let holder = holder.pid.as_raw_nonzero().to_string();
            return Err(NetLockError::Taken { holder });
        }
    }
    Err(NetLockError::Taken {
        holder: "unknown".to_owned(),
    })
}

fn stream() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        flags,
        None,
    )?)
}

/// Whether the holder at the other end releases it within [`PATIENCE`].
fn ends(other: &OwnedFd) -> io::Result<bool> {
    let patience = Timespec::try_from(PATIENCE).ok();
    let mut polled = [PollFd::new(other, PollFlags::IN)];
    match poll(&mut polled, patience.as_ref()) {
        Ok(count) => Ok(count > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_second_holder_is_refused_and_told_who_the_first_is() {
        let name = format!("rubelet-t-second-{}", std::process::id());
        let first = take(&name).unwrap();
        let error = take(&name).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("process {} has it", std::process::id())
        );
        drop(first);
        take(&name).unwrap();
    }

    #[test]
    fn a_name_that_is_given_back_soon_is_waited_for() {
        let name = format!("rubelet-t-soon-{}", std::process::id());
        let first = take(&name).unwrap();
        let second = {
            let name = name.clone();
            thread::spawn(move || take(&name).map(drop))
        };
        drop(first);
        second.join().unwrap().unwrap();
    }
}
