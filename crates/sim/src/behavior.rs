//! Scripted behavior of the process in a container.

use std::time::Duration;

use crate::Instance;

/// Behavior of one started container. By default it runs until SIGTERM, on which it exits
/// immediately with 143.
#[derive(Debug, Clone)]
pub struct Behavior {
    pub(crate) exit: Option<Exit>,
    pub(crate) term: Term,
    pub(crate) refusal: Option<String>,
    pub(crate) prints: Vec<String>,
    pub(crate) reason_lag: Duration,
}

#[derive(Debug, Clone)]
pub(crate) struct Exit {
    pub(crate) after: Duration,
    pub(crate) code: i32,
    pub(crate) reason: &'static str,
}

#[derive(Debug, Clone)]
pub(crate) enum Term {
    Ignore,
    Exit { after: Duration, code: i32 },
}

impl Default for Behavior {
    fn default() -> Self {
        Self::runs()
    }
}

impl Behavior {
    /// Runs until it is stopped.
    #[must_use]
    pub fn runs() -> Self {
        Self {
            exit: None,
            term: Term::Exit {
                after: Duration::ZERO,
                code: 143,
            },
            refusal: None,
            prints: Vec::new(),
            reason_lag: Duration::ZERO,
        }
    }

    /// Exits by itself with `code`, `after` its start.
    #[must_use]
    pub fn exits(after: Duration, code: i32) -> Self {
        let exit = Exit {
            after,
            code,
            reason: "",
        };
        Self {
            exit: Some(exit),
            ..Self::runs()
        }
    }

    /// Is killed by the OOM killer, `after` its start.
    #[must_use]
    pub fn runs_out_of_memory(after: Duration) -> Self {
        let exit = Exit {
            after,
            code: 137,
            reason: "OOMKilled",
        };
        Self {
            exit: Some(exit),
            ..Self::runs()
        }
    }

    /// Cannot be started: `StartContainer` fails with `message`, and the container is exited with
    /// code 128 and reason `StartError`, as with containerd.
    #[must_use]
    pub fn does_not_start(message: &str) -> Self {
        Self {
            refusal: Some(message.to_owned()),
            ..Self::runs()
        }
    }

    /// The same, but it ignores SIGTERM: only SIGKILL ends it early.
    #[must_use]
    pub fn ignoring_term(self) -> Self {
        Self {
            term: Term::Ignore,
            ..self
        }
    }

    /// The same, but on SIGTERM it exits with `code`, `after` that time.
    #[must_use]
    pub fn exiting_on_term(self, after: Duration, code: i32) -> Self {
        Self {
            term: Term::Exit { after, code },
            ..self
        }
    }

    /// The same, but a reason such as `OOMKilled` is known only this long after the exit. Until then
    /// it is `Error`, and no event reports the change.
    #[must_use]
    pub fn with_reason_after(self, lag: Duration) -> Self {
        Self {
            reason_lag: lag,
            ..self
        }
    }

    /// The same, but it prints these lines when it starts. See [`Sim::log`](crate::Sim::log).
    #[must_use]
    pub fn printing(self, lines: &[&str]) -> Self {
        Self {
            prints: lines.iter().map(|line| (*line).to_owned()).collect(),
            ..self
        }
    }
}

/// A start, for which a script returns the behavior.
#[derive(Debug, Clone, Copy)]
pub struct Start<'a> {
    /// The container that starts.
    pub instance: &'a Instance,
    /// Number of earlier attempts to start a container of this pod UID and name.
    pub earlier: usize,
}

/// Behavior of a command that `ExecSync` runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exec {
    /// How long it runs.
    pub takes: Duration,
    /// Its exit code.
    pub exit_code: i32,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Exec {
    /// It exits immediately with this code.
    #[must_use]
    pub fn exits(exit_code: i32) -> Self {
        Self {
            exit_code,
            ..Self::default()
        }
    }

    /// It does not exit by itself.
    #[must_use]
    pub fn hangs() -> Self {
        Self::exits(0).after(Duration::from_secs(1_000_000_000))
    }

    /// The same, but it runs for this long.
    #[must_use]
    pub fn after(self, takes: Duration) -> Self {
        Self { takes, ..self }
    }

    /// The same, but it writes this to standard error.
    #[must_use]
    pub fn with_stderr(self, stderr: &str) -> Self {
        Self {
            stderr: stderr.to_owned(),
            ..self
        }
    }
}

pub(crate) type Script = Box<dyn FnMut(&Start<'_>) -> Behavior + Send>;
pub(crate) type ExecScript = Box<dyn FnMut(&Instance, &[String]) -> Exec + Send>;
