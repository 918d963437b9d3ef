//! The process behind a Unix socket.

use std::path::Path;

use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with,
    sockopt::socket_peercred,
};

/// The process that listens at `path`; `None` if there is none, if this PID namespace does not see it, if it takes no
/// connection at once, and if it is the first process, which listens for services that it starts. Does not block.
#[must_use]
pub fn process_at(path: &Path) -> Option<i32> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).ok()?;
    connect(&socket, &SocketAddrUnix::new(path).ok()?).ok()?;
    let pid = socket_peercred(&socket).ok()?.pid.as_raw_nonzero().get();
    (pid > 1).then_some(pid)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn the_listener_is_found_and_a_file_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        assert_eq!(process_at(&path), None);
        let listener = UnixListener::bind(&path).unwrap();
        let own = i32::try_from(std::process::id()).unwrap();
        assert_eq!(process_at(&path), Some(own));
        drop(listener);
        assert_eq!(process_at(&path), None);
    }
}
