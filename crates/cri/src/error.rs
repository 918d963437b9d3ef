//! Errors of CRI calls, over any transport.

use std::{fmt, time::Duration};

use rubelet_base::duration::format_go;
use tonic::Code;

/// A CRI call that did not succeed. It may have had its effect nevertheless, unless the kind is
/// [`Unavailable`](CriErrorKind::Unavailable) because nothing could be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CriError {
    /// The RPC as the proto names it, such as `RunPodSandbox`.
    pub call: &'static str,
    /// The kind, for callers' decisions.
    pub kind: CriErrorKind,
    /// The runtime's message, or the transport's. May be empty.
    pub message: String,
}

/// The kinds of errors that lead to different decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CriErrorKind {
    /// No such sandbox, container or image.
    NotFound,
    /// The name and attempt, or the image, exists already.
    AlreadyExists,
    /// The runtime does not implement this RPC.
    Unimplemented,
    /// No connection, a lost connection, or a server that is not initialised yet.
    Unavailable,
    /// No response within the caller's deadline, or the runtime itself reports a timeout. Zero if
    /// no deadline of the caller is known.
    DeadlineExceeded(Duration),
    /// The runtime canceled the call on request, or because it was shutting down.
    Canceled,
    /// The request is invalid for the runtime.
    InvalidArgument,
    /// A quota or message size was exceeded.
    ResourceExhausted,
    /// Anything else, by its gRPC code. Runtimes report most failures as `Unknown`.
    Other(Code),
}

impl CriError {
    /// An error of `kind` for the RPC `call`.
    pub fn new(call: &'static str, kind: CriErrorKind, message: impl Into<String>) -> Self {
        Self {
            call,
            kind,
            message: message.into(),
        }
    }

    /// The error for an RPC that an implementor does not have.
    #[must_use]
    pub fn unimplemented(call: &'static str) -> Self {
        Self::new(
            call,
            CriErrorKind::Unimplemented,
            "not offered by this runtime",
        )
    }

    /// The object does not exist: success for a stop or remove.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.kind == CriErrorKind::NotFound
    }

    /// The object exists already.
    #[must_use]
    pub fn is_already_exists(&self) -> bool {
        self.kind == CriErrorKind::AlreadyExists
    }

    /// The runtime does not know the RPC; retrying is pointless until it is replaced.
    #[must_use]
    pub fn is_unimplemented(&self) -> bool {
        self.kind == CriErrorKind::Unimplemented
    }

    /// The runtime is unreachable: a problem of the node, not of one pod.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        self.kind == CriErrorKind::Unavailable
    }

    /// The runtime did not answer in time; whether the effect happened is unknown.
    #[must_use]
    pub fn is_deadline_exceeded(&self) -> bool {
        matches!(self.kind, CriErrorKind::DeadlineExceeded(_))
    }
}

impl CriErrorKind {
    /// The gRPC code of this kind.
    #[must_use]
    pub fn code(self) -> Code {
        match self {
            Self::NotFound => Code::NotFound,
            Self::AlreadyExists => Code::AlreadyExists,
            Self::Unimplemented => Code::Unimplemented,
            Self::Unavailable => Code::Unavailable,
            Self::DeadlineExceeded(_) => Code::DeadlineExceeded,
            Self::Canceled => Code::Cancelled,
            Self::InvalidArgument => Code::InvalidArgument,
            Self::ResourceExhausted => Code::ResourceExhausted,
            Self::Other(code) => code,
        }
    }

    /// The kind of a gRPC code. `deadline` is the caller's, if it is known.
    #[must_use]
    pub fn from_code(code: Code, deadline: Option<Duration>) -> Self {
        match code {
            Code::NotFound => Self::NotFound,
            Code::AlreadyExists => Self::AlreadyExists,
            Code::Unimplemented => Self::Unimplemented,
            Code::Unavailable => Self::Unavailable,
            Code::DeadlineExceeded => Self::DeadlineExceeded(deadline.unwrap_or_default()),
            Code::Cancelled => Self::Canceled,
            Code::InvalidArgument => Self::InvalidArgument,
            Code::ResourceExhausted => Self::ResourceExhausted,
            code => Self::Other(code),
        }
    }
}

impl fmt::Display for CriErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str("not found"),
            Self::AlreadyExists => f.write_str("already exists"),
            Self::Unimplemented => f.write_str("unimplemented"),
            Self::Unavailable => f.write_str("runtime unavailable"),
            Self::DeadlineExceeded(_) => f.write_str("deadline exceeded"),
            Self::Canceled => f.write_str("canceled"),
            Self::InvalidArgument => f.write_str("invalid argument"),
            Self::ResourceExhausted => f.write_str("resource exhausted"),
            // Containerd answers nearly everything with Unknown: the code would only be noise.
            Self::Other(Code::Unknown) => f.write_str("failed"),
            Self::Other(code) => write!(f, "failed ({code:?})"),
        }
    }
}

impl fmt::Display for CriError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            call,
            kind,
            message,
        } = self;
        match kind {
            // Our own deadline has passed; the runtime would have sent a message.
            CriErrorKind::DeadlineExceeded(limit) if message.is_empty() => {
                write!(f, "{call}: no answer within {}", format_go(*limit))
            }
            _ if message.is_empty() => write!(f, "{call}: {kind}"),
            CriErrorKind::Other(Code::Unknown) => write!(f, "{call}: {message}"),
            _ => write!(f, "{call}: {kind}: {message}"),
        }
    }
}

impl std::error::Error for CriError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_reads_the_call_what_happened_and_the_runtimes_words() {
        let minutes = Duration::from_secs(120);
        for (error, text) in [
            (
                CriError::new("StartContainer", CriErrorKind::NotFound, "container \"c1\""),
                "StartContainer: not found: container \"c1\"",
            ),
            (
                CriError::new("RunPodSandbox", CriErrorKind::DeadlineExceeded(minutes), ""),
                "RunPodSandbox: no answer within 2m0s",
            ),
            (
                CriError::new(
                    "PullImage",
                    CriErrorKind::Other(Code::Unknown),
                    "no such host",
                ),
                "PullImage: no such host",
            ),
            (
                CriError::new(
                    "PullImage",
                    CriErrorKind::Other(Code::PermissionDenied),
                    "denied",
                ),
                "PullImage: failed (PermissionDenied): denied",
            ),
        ] {
            assert_eq!(error.to_string(), text);
        }
    }

    #[test]
    fn every_code_survives_the_way_to_a_kind_and_back() {
        for number in 1..=16 {
            let code = Code::from_i32(number);
            assert_eq!(CriErrorKind::from_code(code, None).code(), code);
        }
    }
}
