//! What the process in a container does.

use std::time::Duration;

use crate::Instance;

/// What one started container does. The default runs for ever and ends at once, with 143, when
/// it is sent SIGTERM.
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

    /// Ends by itself, `after` its start, with `code`.
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

    /// Is killed by the kernel for its memory use, `after` its start.
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

    /// Cannot be started: `StartContainer` fails with `message`, the container is left exited with
    /// code 128 and reason `StartError`, as containerd leaves it.
    #[must_use]
    pub fn does_not_start(message: &str) -> Self {
        Self {
            refusal: Some(message.to_owned()),
            ..Self::runs()
        }
    }

    /// The same, but deaf to SIGTERM: only SIGKILL ends it before its time.
    #[must_use]
    pub fn ignoring_term(self) -> Self {
        Self {
            term: Term::Ignore,
            ..self
        }
    }

    /// The same, but SIGTERM ends it with `code`, `after` having cleaned up for that long.
    #[must_use]
    pub fn ending_on_term(self, after: Duration, code: i32) -> Self {
        Self {
            term: Term::Exit { after, code },
            ..self
        }
    }

    /// The same, but a reason such as `OOMKilled` is known only this long after the end. Until then it
    /// is `Error`, and no event reports when that changes.
    #[must_use]
    pub fn with_reason_after(self, lag: Duration) -> Self {
        Self {
            reason_lag: lag,
            ..self
        }
    }

    /// The same, but it prints these lines as soon as it runs. See [`Sim::log`](crate::Sim::log).
    #[must_use]
    pub fn printing(self, lines: &[&str]) -> Self {
        Self {
            prints: lines.iter().map(|line| (*line).to_owned()).collect(),
            ..self
        }
    }
}

/// The start that a script decides about.
#[derive(Debug, Clone, Copy)]
pub struct Start<'a> {
    /// The container that starts.
    pub instance: &'a Instance,
    /// How often the start of a container of this pod UID and name was tried before.
    pub earlier: usize,
}

/// What a command run by `ExecSync` does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exec {
    /// How long it runs.
    pub takes: Duration,
    /// What it exits with.
    pub exit_code: i32,
    /// What it prints.
    pub stdout: String,
    /// What it complains.
    pub stderr: String,
}

impl Exec {
    /// It exits with this code at once.
    #[must_use]
    pub fn exits(exit_code: i32) -> Self {
        Self {
            exit_code,
            ..Self::default()
        }
    }

    /// It does not end by itself.
    #[must_use]
    pub fn hangs() -> Self {
        Self::exits(0).after(Duration::from_secs(1_000_000_000))
    }

    /// The same, but it runs for this long.
    #[must_use]
    pub fn after(self, takes: Duration) -> Self {
        Self { takes, ..self }
    }

    /// The same, but it complains this.
    #[must_use]
    pub fn complaining(self, stderr: &str) -> Self {
        Self {
            stderr: stderr.to_owned(),
            ..self
        }
    }
}

pub(crate) type Script = Box<dyn FnMut(&Start<'_>) -> Behavior + Send>;
pub(crate) type ExecScript = Box<dyn FnMut(&Instance, &[String]) -> Exec + Send>;
