//! Calls of external programs: started here, reaped by the loop. Error messages are read from the
//! `--log` file.

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

use crate::protocol::{CallFailure, FailureKind};

/// The exit of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessExit {
    /// With an exit status.
    Exit(i32),
    /// By a signal.
    Signal(i32),
}

impl ProcessExit {
    /// The exit code as in shells and the CRI: 128 plus the number for a signal.
    pub(crate) fn code(self) -> i32 {
        match self {
            Self::Exit(status) => status,
            Self::Signal(signal) => 128 + signal,
        }
    }

    /// The signal, if one killed it.
    pub(crate) fn signal(self) -> Option<i32> {
        match self {
            Self::Exit(_) => None,
            Self::Signal(signal) => Some(signal),
        }
    }
}

impl fmt::Display for ProcessExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit(status) => write!(f, "exit status {status}"),
            Self::Signal(signal) => write!(f, "killed by signal {signal}"),
        }
    }
}

/// Bytes at the end of a program's log that are read.
const LOG_TAIL: u64 = 8 << 10;

/// A command line in construction.
pub(super) struct RuntimeCommand {
    command: Command,
    binary: PathBuf,
}

impl RuntimeCommand {
    /// A command with the common options.
    pub(super) fn new(binary: &Path, root: &Path, log: &Path) -> Self {
        // Remove messages of an earlier call.
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

    /// Starts it; returns its PID. The loop reaps it like all children.
    pub(super) fn spawn(mut self) -> Result<i32, CallFailure> {
        let spawned = self.command.spawn();
        alloc::trim();
        match spawned {
            Ok(child) => Ok(child.id().cast_signed()),
            Err(error) => Err(CallFailure::new(
                FailureKind::Runtime,
                format!("cannot execute {}: {error}", self.binary.display()),
            )),
        }
    }
}

/// The error message of a program, from its log if possible.
pub(super) fn error_message(log: &Path, binary: &Path, ended: ProcessExit) -> String {
    let name = binary.file_name().unwrap_or(binary.as_os_str()).display();
    match last_error(log) {
        Some(message) => format!("{name}: {message}"),
        None => format!("{name} failed without an error message ({ended})"),
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
    // The last line is the outermost error, which names the operation.
    messages.take(1).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_error_of_the_log_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let binary = Path::new("/usr/sbin/runc");
        assert_eq!(
            error_message(&log, binary, ProcessExit::Exit(1)),
            "runc failed without an error message (exit status 1)"
        );
        fs::write(
            &log,
            "{\"level\":\"error\",\"msg\":\"first\",\"time\":\"t\"}\n{\"level\":\"error\",\"msg\":\"no such file\"}\n\
             {\"level\":\"warning\",\"msg\":\"hm\"}\n{\"level\":\"err",
        )
        .unwrap();
        assert_eq!(
            error_message(&log, binary, ProcessExit::Exit(1)),
            "runc: no such file"
        );
    }
}
