//! How a call ended: codes, and grpc-go's messages.

use http::{HeaderMap, StatusCode, header};

use crate::{http2::io_words, words};

/// The code and message of a call that did not succeed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Status {
    pub(super) code: Code,
    pub(super) message: String,
}

/// A code; unknown numbers are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Code(u32);

impl Code {
    const OK: Self = Self(0);
    const CANCELED: Self = Self(1);
    const UNKNOWN: Self = Self(2);
    pub(super) const DEADLINE_EXCEEDED: Self = Self(4);
    const PERMISSION_DENIED: Self = Self(7);
    const RESOURCE_EXHAUSTED: Self = Self(8);
    pub(super) const UNIMPLEMENTED: Self = Self(12);
    pub(super) const INTERNAL: Self = Self(13);
    const UNAVAILABLE: Self = Self(14);
    const UNAUTHENTICATED: Self = Self(16);

    fn name(self) -> String {
        const NAMES: [&str; 17] = [
            "OK",
            "Canceled",
            "Unknown",
            "InvalidArgument",
            "DeadlineExceeded",
            "NotFound",
            "AlreadyExists",
            "PermissionDenied",
            "ResourceExhausted",
            "FailedPrecondition",
            "Aborted",
            "OutOfRange",
            "Unimplemented",
            "Internal",
            "Unavailable",
            "DataLoss",
            "Unauthenticated",
        ];
        let name = usize::try_from(self.0).ok().and_then(|at| NAMES.get(at));
        name.map_or_else(|| format!("Code({})", self.0), |name| (*name).to_owned())
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "rpc error: code = {} desc = {}",
            self.code.name(),
            self.message
        )
    }
}

impl Status {
    pub(super) fn internal(message: impl Into<String>) -> Self {
        Self {
            code: Code::INTERNAL,
            message: message.into(),
        }
    }

    /// A response that exceeds the limit.
    pub(super) fn too_large(limit: usize) -> Self {
        Self {
            code: Code::RESOURCE_EXHAUSTED,
            message: format!("grpc: received message larger than max ({limit} bytes)"),
        }
    }

    /// The error in the headers of a response: it is not a gRPC response, or it is trailers-only
    /// and contains the status.
    pub(super) fn of_head(status: StatusCode, headers: &HeaderMap) -> Option<Self> {
        let content_type = headers
            .get(header::CONTENT_TYPE)
            .map(|value| String::from_utf8_lossy(value.as_bytes()));
        let is_grpc = content_type.as_deref().is_some_and(is_grpc);
        if is_grpc && status == StatusCode::OK {
            return None;
        }
        let code = match status.as_u16() {
            400 => Code::INTERNAL,
            401 => Code::UNAUTHENTICATED,
            403 => Code::PERMISSION_DENIED,
            404 => Code::UNIMPLEMENTED,
            429 | 502 | 503 | 504 => Code::UNAVAILABLE,
            _ => Code::UNKNOWN,
        };
        let mut complaints = Vec::new();
        if status != StatusCode::OK {
            let number = status.as_u16();
            let reason = status.canonical_reason().unwrap_or_default();
            complaints.push(format!(
                "unexpected HTTP status code received from server: {number} ({reason})"
            ));
        }
        match content_type {
            None => complaints.push("malformed header: missing HTTP content-type".to_owned()),
            Some(found) if !is_grpc => complaints.push(format!(
                "transport: received unexpected content-type {}",
                words::quoted(found.as_bytes())
            )),
            Some(_) => {}
        }
        Some(Self {
            code,
            message: complaints.join("; "),
        })
    }

    /// Evaluates `grpc-status` and `grpc-message`. A missing status is an unknown one.
    ///
    /// # Errors
    /// The call did not succeed.
    pub(super) fn of_trailers(trailers: &HeaderMap) -> Result<(), Self> {
        let text = |name| {
            let value: Option<&http::HeaderValue> = trailers.get(name);
            value.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let code = match text("grpc-status").map(|code| (code.parse(), code)) {
            None => Code::UNKNOWN,
            Some((Ok(number), _)) => Code(number),
            Some((Err(_), text)) => {
                return Err(Self::internal(format!(
                    "transport: malformed grpc-status: {text}"
                )));
            }
        };
        if code == Code::OK {
            return Ok(());
        }
        let message = text("grpc-message").unwrap_or_default();
        Err(Self {
            code,
            message: decoded(&message),
        })
    }

    /// The status of a call whose stream or connection failed.
    pub(super) fn of_error(error: &h2::Error) -> Self {
        if let Some(error) = error.get_io() {
            return Self {
                code: Code::UNAVAILABLE,
                message: format!("error reading from server: {}", io_words(error)),
            };
        }
        let reason = error.reason().unwrap_or(h2::Reason::INTERNAL_ERROR);
        if error.is_reset() && error.is_remote() {
            return Self {
                code: of_reason(reason),
                message: format!("stream terminated by RST_STREAM with error code: {reason:?}"),
            };
        }
        if error.is_go_away() && error.is_remote() {
            return Self {
                code: Code::UNAVAILABLE,
                message: format!(
                    "closing transport due to: connection error: desc = \"error reading from \
                     server: EOF\", received prior goaway: code: {reason:?}"
                ),
            };
        }
        Self::internal(error.to_string())
    }
}

fn is_grpc(content_type: &str) -> bool {
    content_type
        .to_ascii_lowercase()
        .strip_prefix("application/grpc")
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['+', ';']))
}

fn of_reason(reason: h2::Reason) -> Code {
    match reason {
        h2::Reason::REFUSED_STREAM => Code::UNAVAILABLE,
        h2::Reason::CANCEL => Code::CANCELED,
        h2::Reason::FLOW_CONTROL_ERROR | h2::Reason::ENHANCE_YOUR_CALM => Code::RESOURCE_EXHAUSTED,
        h2::Reason::INADEQUATE_SECURITY => Code::PERMISSION_DENIED,
        _ => Code::INTERNAL,
    }
}

/// Decodes `%XX`; invalid sequences stay.
fn decoded(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| *byte == b'%');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                rest = &after[2..];
            }
            None => {
                out.push(*byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| {
                let name = http::HeaderName::from_static(name);
                (name, http::HeaderValue::from_static(value))
            })
            .collect()
    }

    #[test]
    fn trailers_are_read_as_grpc_go_reads_them() {
        for (trailers, text) in [
            (map(&[("grpc-status", "0")]), None),
            (
                map(&[
                    ("grpc-status", "5"),
                    ("grpc-message", "unknown%20service%25 %zz"),
                ]),
                Some("rpc error: code = NotFound desc = unknown service% %zz"),
            ),
            (map(&[]), Some("rpc error: code = Unknown desc = ")),
            (
                map(&[("grpc-status", "99"), ("grpc-message", "x")]),
                Some("rpc error: code = Code(99) desc = x"),
            ),
            (
                map(&[("grpc-status", "?")]),
                Some("rpc error: code = Internal desc = transport: malformed grpc-status: ?"),
            ),
        ] {
            let error = Status::of_trailers(&trailers).err();
            assert_eq!(error.map(|error| error.to_string()).as_deref(), text);
        }
    }

    #[test]
    fn responses_that_are_not_grpc_have_different_errors() {
        for (status, content_type, text) in [
            (200, Some("application/grpc"), None),
            (200, Some("application/grpc+proto"), None),
            (
                404,
                Some("text/plain"),
                Some(
                    "rpc error: code = Unimplemented desc = unexpected HTTP status code received \
                     from server: 404 (Not Found); transport: received unexpected content-type \
                     \"text/plain\"",
                ),
            ),
            (
                503,
                Some("application/grpc"),
                Some(
                    "rpc error: code = Unavailable desc = unexpected HTTP status code received \
                     from server: 503 (Service Unavailable)",
                ),
            ),
            (
                200,
                None,
                Some(
                    "rpc error: code = Unknown desc = malformed header: missing HTTP content-type",
                ),
            ),
        ] {
            let headers =
                content_type.map(|found| (header::CONTENT_TYPE, found.parse().expect("a value")));
            let headers: HeaderMap = headers.into_iter().collect();
            let status = StatusCode::from_u16(status).expect("a status");
            let found = Status::of_head(status, &headers);
            assert_eq!(found.map(|found| found.to_string()).as_deref(), text);
        }
    }
}
