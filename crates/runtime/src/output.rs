//! The output of a command that a caller waits for: all of it, up to a limit.

use std::{io, os::fd::OwnedFd, time::Duration};

use rustix::pipe::{PipeFlags, pipe_with};
use tokio::{io::AsyncReadExt, net::unix::pipe, time::timeout};

/// Maximum bytes of one stream; the rest is read and discarded, as in containerd.
pub(crate) const LIMIT: usize = 16 << 20;

/// Timeout for the end of a stream after the command exited: a background process may hold the
/// stream open.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// One output stream of a command.
#[derive(Debug)]
pub(crate) struct OutputBuffer {
    pipe: pipe::Receiver,
    bytes: Vec<u8>,
}

impl OutputBuffer {
    /// A stream, and the end that the command writes to.
    pub(crate) fn new() -> io::Result<(Self, OwnedFd)> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        let output = Self {
            pipe: pipe::Receiver::from_owned_fd(read)?,
            bytes: Vec::new(),
        };
        Ok((output, write))
    }

    /// Reads until the end. Cancel safe: may be dropped and called again without losing data.
    pub(crate) async fn read(&mut self) {
        let mut portion = Vec::new();
        loop {
            portion.clear();
            portion.reserve(16 << 10);
            // `read_buf` is cancel safe.
            match self.pipe.read_buf(&mut portion).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {
                    let room = LIMIT - self.bytes.len();
                    self.bytes
                        .extend_from_slice(&portion[..portion.len().min(room)]);
                }
            }
        }
    }

    /// All bytes that were read.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Reads both streams of a command that exited until they end, or for [`DRAIN_TIMEOUT`].
pub(crate) async fn drain(stdout: &mut OutputBuffer, stderr: &mut OutputBuffer) {
    let both = async {
        tokio::join!(stdout.read(), stderr.read());
    };
    // `timeout` polls the read first, so data that is already in the pipe is read in any case.
    let _ = timeout(DRAIN_TIMEOUT, both).await;
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[tokio::test]
    async fn output_beyond_the_limit_is_read_and_left_out() {
        let (mut output, end) = OutputBuffer::new().unwrap();
        let writer = std::thread::spawn(move || {
            let mut end = std::fs::File::from(end);
            let piece = vec![b'x'; 1 << 20];
            for _ in 0..17 {
                end.write_all(&piece).unwrap();
            }
        });
        output.read().await;
        writer.join().unwrap();
        assert_eq!(output.into_bytes().len(), LIMIT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_is_held_open_is_not_waited_for() {
        let (mut stdout, end) = OutputBuffer::new().unwrap();
        let (mut stderr, _held) = OutputBuffer::new().unwrap();
        std::fs::File::from(end).write_all(b"hi\n").unwrap();
        drain(&mut stdout, &mut stderr).await;
        assert_eq!(stdout.into_bytes(), b"hi\n");
    }
}
