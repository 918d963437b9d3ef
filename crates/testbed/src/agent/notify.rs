//! The receiver of sd_notify, instead of systemd.

use std::fmt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::clock;

/// The datagram that stops the receiver's thread.
const END: &[u8] = b"X_TESTBED_END=1";

/// One message of the agent to systemd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    /// When it arrived.
    pub at: Instant,
    /// Its text, lines of `NAME=value`.
    pub text: String,
}

impl Notification {
    /// The value of `STATUS`, if the message has one.
    #[must_use]
    pub fn status(&self) -> Option<&str> {
        self.value("STATUS")
    }

    /// Whether it says `READY=1`.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.value("READY") == Some("1")
    }

    /// Whether it says `WATCHDOG=1`.
    #[must_use]
    pub fn is_watchdog(&self) -> bool {
        self.value("WATCHDOG") == Some("1")
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
    }
}

impl fmt::Display for Notification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text.trim().replace('\n', " "))
    }
}

#[derive(Debug, Default)]
struct Received {
    messages: Mutex<Vec<Notification>>,
    more: Condvar,
}

impl Received {
    fn messages(&self) -> MutexGuard<'_, Vec<Notification>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Collects the messages of a socket.
#[derive(Debug)]
pub(super) struct Receiver {
    received: Arc<Received>,
    ender: UnixDatagram,
    thread: Option<JoinHandle<()>>,
}

impl Receiver {
    pub(super) fn bind(path: &Path) -> Result<Self> {
        let socket = UnixDatagram::bind(path)
            .with_context(|| format!("cannot listen on {}", path.display()))?;
        let ender = UnixDatagram::unbound()?;
        ender.connect(path)?;
        let received = Arc::new(Received::default());
        let into = Arc::clone(&received);
        let thread = std::thread::Builder::new()
            .name("notify".into())
            .spawn(move || receive(&socket, &into))
            .context("cannot start a thread")?;
        Ok(Self {
            received,
            ender,
            thread: Some(thread),
        })
    }

    pub(super) fn all(&self) -> Vec<Notification> {
        self.received.messages().clone()
    }

    pub(super) fn forget(&self) {
        self.received.messages().clear();
    }

    /// The first message that satisfies `wanted`; `None` on a timeout.
    pub(super) fn wait(
        &self,
        timeout: Duration,
        wanted: impl Fn(&Notification) -> bool,
    ) -> Option<Notification> {
        let none_yet = |messages: &mut Vec<Notification>| !messages.iter().any(&wanted);
        let (messages, _) = self
            .received
            .more
            .wait_timeout_while(self.received.messages(), timeout, none_yet)
            .unwrap_or_else(PoisonError::into_inner);
        messages.iter().find(|message| wanted(message)).cloned()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // Without a receiver there is no thread to stop either.
        let _ = self.ender.send(END);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn receive(socket: &UnixDatagram, into: &Received) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length) = socket.recv(&mut buffer) {
        let bytes = &buffer[..length];
        if bytes == END {
            return;
        }
        let text = String::from_utf8_lossy(bytes).into_owned();
        into.messages().push(Notification {
            at: clock::now(),
            text,
        });
        into.more.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_messages_are_found_until_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("n");
        let receiver = Receiver::bind(&path).unwrap();
        let agent = UnixDatagram::unbound().unwrap();
        agent
            .send_to(b"READY=1\nSTATUS=3/4 pods ready\n", &path)
            .unwrap();
        let told = receiver
            .wait(Duration::from_secs(60), Notification::is_ready)
            .unwrap();
        assert_eq!(told.status(), Some("3/4 pods ready"));
        assert!(!told.is_watchdog());
        receiver.forget();
        assert_eq!(receiver.wait(Duration::ZERO, Notification::is_ready), None);
    }
}
