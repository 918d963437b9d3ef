//! A terminal that sends all keys to the container.

use std::{io, os::fd::OwnedFd};

use rubelet_streaming::TerminalSize;
use rustix::termios::{self, OptionalActions, Termios};

/// True for a terminal.
pub(super) fn is_terminal(fd: &OwnedFd) -> bool {
    termios::isatty(fd)
}

/// A terminal in raw mode. It is restored on drop, also on a panic.
pub(super) struct RawTerminal {
    fd: OwnedFd,
    before: Termios,
}

impl RawTerminal {
    pub(super) fn enter(fd: &OwnedFd) -> io::Result<Self> {
        let fd = fd.try_clone()?;
        let before = termios::tcgetattr(&fd)?;
        let mut raw = before.clone();
        raw.make_raw();
        termios::tcsetattr(&fd, OptionalActions::Now, &raw)?;
        Ok(Self { fd, before })
    }

    /// Its size; `None` if it has none, such as a serial line.
    pub(super) fn size(&self) -> Option<TerminalSize> {
        let size = termios::tcgetwinsize(&self.fd).ok()?;
        (size.ws_col > 0 && size.ws_row > 0).then_some(TerminalSize {
            width: size.ws_col,
            height: size.ws_row,
        })
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        // A terminal that is gone needs no restore.
        let _ = termios::tcsetattr(&self.fd, OptionalActions::Now, &self.before);
    }
}
