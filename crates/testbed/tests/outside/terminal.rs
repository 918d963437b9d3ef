//! Programs on a terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rubelet_testbed::{clock, wait};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{self, OpenptFlags};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use super::TIMEOUT;

/// Time between two attempts of a question.
const AGAIN: Duration = Duration::from_secs(1);

/// A command on a terminal.
pub(crate) struct OnTerminal {
    pub(crate) child: Child,
    person: File,
    program: OwnedFd,
    shown: String,
}

impl OnTerminal {
    /// Starts it, on a terminal of 80 columns and 24 lines.
    pub(crate) fn start(command: &mut Command) -> Self {
        let person = pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        pty::unlockpt(&person).unwrap();
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let program = pty::ioctl_tiocgptpeer(&person, flags).unwrap();
        let size = Winsize {
            ws_row: 24,
            ws_col: 80,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&program, size).unwrap();
        let end = || Stdio::from(program.try_clone().unwrap());
        let command = command.stdin(end()).stdout(end()).stderr(end());
        let child = command.spawn().unwrap();
        Self {
            child,
            person: person.into(),
            program,
            shown: String::new(),
        }
    }

    /// Types keys.
    pub(crate) fn types(&mut self, keys: &str) {
        self.person.write_all(keys.as_bytes()).unwrap();
    }

    /// Reads until this is on the screen; discards everything before it.
    pub(crate) fn shows(&mut self, text: &str) {
        let shown = self.shows_within(TIMEOUT, text);
        assert!(shown, "{text:?} is not shown: {:?}", self.shown);
    }

    /// Types keys, and again every second, until the answer is on the screen: a session may pass on input
    /// before it shows output, and its terminal may get its size later.
    pub(crate) fn answers(&mut self, keys: &str, text: &str) {
        let deadline = clock::now() + wait::patiently(TIMEOUT);
        self.types(keys);
        while !self.shows_within(AGAIN, text) {
            assert!(
                clock::now() < deadline,
                "{text:?} is not shown: {:?}",
                self.shown
            );
            self.types(keys);
        }
    }

    fn shows_within(&mut self, time: Duration, text: &str) -> bool {
        let mut buffer = [0; 4096];
        while !self.shown.contains(text) {
            let timeout = Timespec::try_from(time).unwrap();
            let mut polled = [PollFd::new(&self.person, PollFlags::IN)];
            if poll(&mut polled, Some(&timeout)).unwrap() == 0 {
                return false;
            }
            let read = self.person.read(&mut buffer).unwrap();
            self.shown += &String::from_utf8_lossy(&buffer[..read]);
        }
        let end = self.shown.find(text).unwrap() + text.len();
        self.shown.drain(..end);
        true
    }

    /// Waits for its end, after which the terminal must be as it was; returns the exit code.
    pub(crate) fn ends(&mut self) -> Option<i32> {
        let ended = wait::until("the command ends", TIMEOUT, || Ok(self.child.try_wait()?));
        let modes = tcgetattr(&self.program).unwrap().local_modes;
        let cooked = LocalModes::ICANON | LocalModes::ISIG | LocalModes::ECHO;
        assert!(modes.contains(cooked), "the terminal is as it was");
        ended.unwrap().code()
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        // It may have exited by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
