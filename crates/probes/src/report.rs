//! The result of an attempt.

use std::time::Duration;

/// Maximum size of a response that is read, and of an output that is kept.
pub const MAX_OUTPUT: usize = 10 * 1024;

/// The result of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeReport {
    /// The outcome.
    pub verdict: ProbeOutcome,
    /// The text after `Liveness probe failed: ` and the like in the event; at most [`MAX_OUTPUT`]
    /// bytes. If the probe passed: the target's response.
    pub output: String,
    /// Time from the first system call to the outcome.
    pub latency: Duration,
}

/// The outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeOutcome {
    /// Success.
    Passed,
    /// Success with a warning: event `ProbeWarning`, or `LifecycleHTTPFallback` for a hook.
    Warned,
    /// The target refused, answered wrongly or closed the connection early.
    Failed,
    /// The target did not answer in time.
    TimedOut,
    /// No result that counts: the probe's port can't be resolved, this machine has run out of
    /// sockets or ports, or a successful response was truncated in its body. The kubelet retries
    /// such an attempt up to three times and then ignores it.
    Errored,
}

impl ProbeReport {
    pub(crate) fn new(verdict: ProbeOutcome, output: String, latency: Duration) -> Self {
        Self {
            verdict,
            output: shortened(output),
            latency,
        }
    }
}

/// Why an attempt did not pass.
#[derive(Debug)]
pub(crate) struct ProbeFailure {
    pub(crate) verdict: ProbeOutcome,
    pub(crate) text: String,
}

impl ProbeFailure {
    pub(crate) fn failed(text: impl Into<String>) -> Self {
        Self {
            verdict: ProbeOutcome::Failed,
            text: text.into(),
        }
    }

    pub(crate) fn errored(text: impl Into<String>) -> Self {
        Self {
            verdict: ProbeOutcome::Errored,
            text: text.into(),
        }
    }

    pub(crate) fn timed_out(text: impl Into<String>) -> Self {
        Self {
            verdict: ProbeOutcome::TimedOut,
            text: text.into(),
        }
    }
}

/// The beginning of a text, at most [`MAX_OUTPUT`] bytes, cut at a character boundary.
fn shortened(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MAX_OUTPUT));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_is_cut_between_characters() {
        for (text, length) in [("a", 10_000), ("a", 20_000), ("ü", 5_120), ("€", 5_000)] {
            let report =
                ProbeReport::new(ProbeOutcome::Passed, text.repeat(length), Duration::ZERO);
            let expected = (length * text.len()).min(MAX_OUTPUT / text.len() * text.len());
            assert_eq!(report.output.len(), expected, "{length} times {text}");
        }
    }
}
