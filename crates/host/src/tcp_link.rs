//! What the kernel knows about the other end of a TCP connection: `TCP_INFO`, which rustix does not offer.

use std::{
    io,
    mem::{MaybeUninit, size_of},
    os::fd::{AsFd, AsRawFd},
    time::Duration,
};

/// A connection, as its other end acknowledges it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpSilence {
    /// Time since the other end acknowledged something, or answered a probe.
    pub since_answer: Duration,
    /// Data, or a probe (of keepalive, or of a window that is closed), waits for an answer.
    pub awaits_answer: bool,
}

/// Reads it, without waiting.
///
/// # Errors
/// The descriptor is no TCP socket.
pub fn tcp_silence(socket: impl AsFd) -> io::Result<TcpSilence> {
    let info = tcp_info(socket.as_fd().as_raw_fd())?;
    Ok(TcpSilence {
        since_answer: Duration::from_millis(info.tcpi_last_ack_recv.into()),
        awaits_answer: info.tcpi_unacked > 0 || info.tcpi_probes > 0,
    })
}

#[expect(unsafe_code, reason = "a socket option that rustix does not offer")]
fn tcp_info(fd: std::os::fd::RawFd) -> io::Result<libc::tcp_info> {
    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut length = libc::socklen_t::try_from(size_of::<libc::tcp_info>()).unwrap_or_default();
    // SAFETY: the kernel writes at most `length` bytes, the size of `info`; `length` is this function's.
    let done = unsafe {
        libc::getsockopt(
            fd,
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: all fields are integers, and zero where the kernel wrote nothing.
    Ok(unsafe { info.assume_init() })
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write as _,
        net::{TcpListener, TcpStream},
    };

    use super::*;

    #[test]
    fn data_that_is_read_or_only_received_is_acknowledged() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        client.write_all(b"hello").unwrap();
        // The other end's kernel acknowledges at once, or within its delay, whether or not anybody reads.
        while tcp_silence(&client).unwrap().awaits_answer {
            std::thread::yield_now();
        }
        drop(server);
    }

    #[test]
    fn what_is_no_tcp_socket_is_an_error() {
        assert!(tcp_silence(std::fs::File::open("/dev/null").unwrap()).is_err());
    }
}
