//! External programs: started here, reaped by the loop, their complaints read from the log file
//! they are told to write.

use std::{
    ffi::OsStr,
    fmt,
    fs::{self, File},
    io::{Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use rubelet_host::alloc;
use serde::Deserialize;

use crate::protocol::{Failure, FailureKind};

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// By itself, with that status.
    Exit(i32),
    /// By that signal.
    Signal(i32),
}

impl Ended {
    /// As shells and the CRI count.
    pub(crate) fn code(self) -> i32 {
        match self {
            Self::Exit(status) => status,
            Self::Signal(signal) => 128 + signal,
        }
    }

    /// The signal, if one ended it.
    pub(crate) fn signal(self) -> Option<i32> {
        match self {
            Self::Exit(_) => None,
            Self::Signal(signal) => Some(signal),
        }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit(status) => write!(f, "exit status {status}"),
            Self::Signal(signal) => write!(f, "killed by signal {signal}"),
        }
    }
}

/// Most bytes at the end of a program's log that are looked at.
const LOG_TAIL: u64 = 8 << 10;

/// A call of the program that is being put together.
pub(super) struct Call {
    command: Command,
    binary: PathBuf,
}

impl Call {
    /// A call with the options that every one has.
    pub(super) fn new(binary: &Path, root: &Path, log: &Path) -> Self {
        // What an earlier call had to say must not be taken for this one's.
        let _ = fs::remove_file(log);
        let mut command = Command::new(binary);
        command.arg("--root").arg(root).arg("--log").arg(log);
        command.args(["--log-format", "json"]);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Self {
            command,
            binary: binary.to_owned(),
        }
    }

    pub(super) fn arg(&mut self, arg: impl AsRef<OsStr>) -> &mut Self {
        self.command.arg(arg);
        self
    }

    pub(super) fn streams(&mut self, [stdin, stdout, stderr]: [Stdio; 3]) -> &mut Self {
        self.command.stdin(stdin).stdout(stdout).stderr(stderr);
        self
    }

    /// Starts it; its process ID. The loop reaps it like all children.
    pub(super) fn spawn(mut self) -> Result<i32, Failure> {
        let spawned = self.command.spawn();
        alloc::trim();
        match spawned {
            Ok(child) => Ok(child.id().cast_signed()),
            Err(error) => Err(Failure::new(
                FailureKind::Runtime,
                format!("cannot execute {}: {error}", self.binary.display()),
            )),
        }
    }
}

/// Why a program failed, in its own words if it left some.
pub(super) fn complaint(log: &Path, binary: &Path, ended: Ended) -> String {
    let name = binary.file_name().unwrap_or(binary.as_os_str()).display();
    match last_error(log) {
        Some(message) => format!("{name}: {message}"),
        None => format!("{name} failed without a word ({ended})"),
    }
}

fn last_error(log: &Path) -> Option<String> {
    #[derive(Deserialize)]
    struct Line {
        level: String,
        msg: String,
    }
    let mut file = File::open(log).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL)))
        .ok()?;
    let mut tail = Vec::new();
    file.take(LOG_TAIL).read_to_end(&mut tail).ok()?;
    let text = String::from_utf8_lossy(&tail);
    let messages = text.lines().rev().filter_map(|line| {
        let line: Line = serde_json::from_str(line).ok()?;
        matches!(line.level.as_str(), "error" | "fatal" | "panic").then_some(line.msg)
    });
    // The last line is the outermost error, which names what was tried.
    messages.take(1).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_error_of_the_log_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let binary = Path::new("/usr/sbin/runc");
        assert_eq!(
            complaint(&log, binary, Ended::Exit(1)),
            "runc failed without a word (exit status 1)"
        );
        fs::write(
            &log,
            "{\"level\":\"error\",\"msg\":\"first\",\"time\":\"t\"}\n{\"level\":\"error\",\"msg\":\"no such file\"}\n\
             {\"level\":\"warning\",\"msg\":\"hm\"}\n{\"level\":\"err",
        )
        .unwrap();
        assert_eq!(
            complaint(&log, binary, Ended::Exit(1)),
            "runc: no such file"
        );
    }
}
