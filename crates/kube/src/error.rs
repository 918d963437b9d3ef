//! Why a request to the API server failed.

use std::time::Duration;

use rubelet_yaml::read_json;
use serde::Deserialize;

use crate::{credentials::CredentialError, transport::TransportError};

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The API server refused it.
    #[error("{message}")]
    Status {
        /// HTTP status.
        code: u16,
        /// The reason of the `metav1.Status`, such as `NotFound`; the usual one of the code where
        /// the answer names none.
        reason: String,
        /// The API server's message; never empty.
        message: String,
        /// `Retry-After` of the response.
        retry_after: Option<Duration>,
    },
    /// The connection failed before the response. Whether the request was carried out is unknown.
    #[error("the API server cannot be reached")]
    Unreachable(#[source] TransportError),
    /// No response within the request timeout. Whether the request was carried out is unknown.
    #[error("the request to the API server timed out")]
    TimedOut,
    /// The answer, or the object to be sent, is not what it should be.
    #[error("invalid response from the API server")]
    Body(#[source] BodyError),
    /// No credentials are available.
    #[error("no credentials for the API server")]
    Credentials(#[source] CredentialError),
    /// The request is invalid: a mistake of the caller.
    #[error("bad request to {path}: {problem}")]
    Request {
        /// The requested path.
        path: String,
        /// The error.
        problem: String,
    },
}

/// An error of a response body.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// It is larger than anything the API server stores.
    #[error("larger than {0} MiB")]
    TooLarge(usize),
    /// It ended too early.
    #[error("incomplete body")]
    Broken(#[source] hyper::Error),
    /// It is no JSON of the expected type.
    #[error("unexpected JSON")]
    Json(#[source] serde_json::Error),
}

impl ApiError {
    /// The HTTP status, where there was an answer.
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Status { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// The reason of the `metav1.Status`, where there was an answer.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Status { reason, .. } => Some(reason),
            _ => None,
        }
    }

    /// The delay before the next try that the API server asks for.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// There is no such object.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.code() == Some(404)
    }

    /// The object is another one than the caller thought, by version or UID.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.code() == Some(409) && !self.is_already_exists()
    }

    /// There is an object of that name.
    #[must_use]
    pub fn is_already_exists(&self) -> bool {
        self.reason() == Some("AlreadyExists")
    }

    /// The resource version, or the continuation of a list, is too old.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.code() == Some(410) || matches!(self.reason(), Some("Expired" | "Gone"))
    }

    /// The node may not do this.
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        self.code() == Some(403)
    }

    /// The same request may succeed later without a change of it.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::TimedOut | Self::Credentials(_) => true,
            Self::Body(error) => matches!(error, BodyError::Broken(_)),
            Self::Request { .. } => false,
            Self::Status { code, .. } => matches!(code, 401 | 408 | 429 | 500 | 502..=504),
        }
    }

    /// The error of an answer with this status and body. `header` is `Retry-After` in seconds.
    pub(crate) fn from_answer(code: u16, header: Option<Duration>, body: &[u8]) -> Self {
        let status = StatusBody::read(body);
        Self::from_status(status, code, header, body)
    }

    /// The error in the `Status` object of a watch's `ERROR` event.
    pub(crate) fn from_event(object: &str) -> Self {
        let status = StatusBody::read(object.as_bytes());
        let code = status.code.unwrap_or(500);
        Self::from_status(status, code, None, object.as_bytes())
    }

    fn from_status(status: StatusBody, code: u16, header: Option<Duration>, body: &[u8]) -> Self {
        let seconds = status
            .details
            .and_then(|details| details.retry_after_seconds);
        let reason = match status.reason {
            Some(reason) if !reason.is_empty() => reason,
            _ => usual_reason(code).to_owned(),
        };
        let message = match status.message {
            Some(message) if !message.is_empty() => message,
            _ => excerpt(code, body),
        };
        Self::Status {
            code,
            reason,
            message,
            retry_after: header.or(seconds.filter(|s| *s > 0).map(Duration::from_secs)),
        }
    }
}

/// The used fields of a `metav1.Status`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct StatusBody {
    code: Option<u16>,
    reason: Option<String>,
    message: Option<String>,
    details: Option<StatusDetails>,
}

impl StatusBody {
    /// Decodes as much of it as possible.
    fn read(body: &[u8]) -> Self {
        read_json(body).map_or_else(|_| Self::default(), |read| read.value)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StatusDetails {
    retry_after_seconds: Option<u64>,
}

/// `metav1.StatusReason` as the API server pairs it with the code.
fn usual_reason(code: u16) -> &'static str {
    match code {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        405 => "MethodNotAllowed",
        406 => "NotAcceptable",
        409 => "Conflict",
        410 => "Gone",
        413 => "RequestEntityTooLarge",
        415 => "UnsupportedMediaType",
        422 => "Invalid",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        500.. => "InternalError",
        _ => "Unknown",
    }
}

/// Characters of a foreign answer that are shown.
const EXCERPT: usize = 200;

/// An excerpt of an answer that is no `Status`: a proxy's page, mostly.
fn excerpt(code: u16, body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(4 * EXCERPT)]);
    let first = text.lines().map(str::trim).find(|line| !line.is_empty());
    match first {
        None => format!("the API server answered {code} with an empty body"),
        Some(line) => {
            let line: String = line
                .chars()
                .filter(|c| !c.is_control())
                .take(EXCERPT)
                .collect();
            format!("the API server answered {code}: {line}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_distinguished_by_code_and_reason() {
        let body = br#"{"kind":"Status","code":409,"reason":"AlreadyExists","message":"pods \"a\" already exists"}"#;
        let error = ApiError::from_answer(409, None, body);
        assert!(error.is_already_exists() && !error.is_conflict());
        assert_eq!(error.to_string(), r#"pods "a" already exists"#);

        let error = ApiError::from_event(r#"{"code":410,"message":"too old resource version"}"#);
        assert!(error.is_gone() && !error.is_transient());
        let error = ApiError::from_event(r#"{"code":500,"reason":"Expired"}"#);
        assert!(error.is_gone());
        let odd = r#"{"code":"410","reason":"Expired","message":null,"details":{"retryAfterSeconds":-1}}"#;
        assert!(ApiError::from_event(odd).is_gone());
    }

    #[test]
    fn an_answer_of_a_proxy_is_quoted_in_short() {
        let error = ApiError::from_answer(502, None, b"\n<html>bad gateway</html>\nmore");
        assert_eq!(
            error.to_string(),
            "the API server answered 502: <html>bad gateway</html>"
        );
        assert!(error.is_transient());
        assert_eq!(error.reason(), Some("InternalError"));
        let error = ApiError::from_answer(404, None, b"");
        assert_eq!(
            error.to_string(),
            "the API server answered 404 with an empty body"
        );
        let error = ApiError::from_answer(500, None, "x".repeat(5000).as_bytes());
        assert!(error.to_string().len() < 300);
    }

    #[test]
    fn the_time_to_wait_comes_from_header_or_body() {
        let body = br#"{"details":{"retryAfterSeconds":7}}"#;
        let seconds = |header, body: &[u8]| ApiError::from_answer(429, header, body).retry_after();
        assert_eq!(seconds(None, body), Some(Duration::from_secs(7)));
        let header = Some(Duration::from_secs(1));
        assert_eq!(seconds(header, body), header);
        assert_eq!(seconds(None, b"{}"), None);
    }
}
