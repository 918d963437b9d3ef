//! What an attempt says.

use std::time::Duration;

/// The most bytes of an answer that are read, and of an output that is kept.
pub const MAX_OUTPUT: usize = 10 * 1024;

/// What came of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// What it means.
    pub verdict: Verdict,
    /// What the event says after `Liveness probe failed: ` and the like; at most [`MAX_OUTPUT`]
    /// bytes. Of a probe that passed: what the target answered.
    pub output: String,
    /// From the first system call to the verdict.
    pub latency: Duration,
}

/// What an attempt means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Success.
    Passed,
    /// Success, and the operator should know of something: event `ProbeWarning`, or
    /// `LifecycleHTTPFallback` for a hook.
    Warned,
    /// The target refused, answered wrongly or broke off.
    Failed,
    /// The target did not answer in time.
    TimedOut,
    /// No result that counts: the probe's port has no number, this machine has run out of sockets
    /// or ports, or the answer began well and broke off in its body. The kubelet tries such an
    /// attempt up to three times and then ignores it.
    Errored,
}

impl Report {
    pub(crate) fn new(verdict: Verdict, output: String, latency: Duration) -> Self {
        Self {
            verdict,
            output: shortened(output),
            latency,
        }
    }
}

/// Why an attempt did not pass.
#[derive(Debug)]
pub(crate) struct Trouble {
    pub(crate) verdict: Verdict,
    pub(crate) text: String,
}

impl Trouble {
    pub(crate) fn failed(text: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Failed,
            text: text.into(),
        }
    }

    pub(crate) fn errored(text: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Errored,
            text: text.into(),
        }
    }

    pub(crate) fn timed_out(text: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::TimedOut,
            text: text.into(),
        }
    }
}

/// The beginning of a text, at most [`MAX_OUTPUT`] bytes, no character cut in two.
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
            let report = Report::new(Verdict::Passed, text.repeat(length), Duration::ZERO);
            let expected = (length * text.len()).min(MAX_OUTPUT / text.len() * text.len());
            assert_eq!(report.output.len(), expected, "{length} times {text}");
        }
    }
}
