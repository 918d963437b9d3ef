//! Errors as v1 Status objects, with the API server's codes, reasons and messages.

use http::StatusCode;
use serde_json::{Value, json};

use crate::Kind;

/// An error response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason} ({code}): {message}")]
pub struct StatusError {
    /// The HTTP status code.
    pub code: u16,
    /// The machine-readable reason, such as `AlreadyExists`.
    pub reason: String,
    /// The human-readable message.
    pub message: String,
    /// Seconds after which the client may try again.
    pub retry_after: Option<u32>,
    details: Option<Box<Details>>,
}

/// The object and fields of an error.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Details {
    kind: &'static str,
    group: &'static str,
    name: String,
    causes: Vec<FieldError>,
}

/// An invalid field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldError {
    pub(crate) reason: &'static str,
    pub(crate) field: String,
    pub(crate) message: String,
}

impl FieldError {
    pub(crate) fn required(field: impl Into<String>, message: &str) -> Self {
        let message = match message {
            "" => "Required value".to_owned(),
            message => format!("Required value: {message}"),
        };
        Self {
            reason: "FieldValueRequired",
            field: field.into(),
            message,
        }
    }

    pub(crate) fn invalid(field: impl Into<String>, value: &Value, message: &str) -> Self {
        Self {
            reason: "FieldValueInvalid",
            field: field.into(),
            message: format!("Invalid value: {value}: {message}"),
        }
    }

    fn to_json(&self) -> Value {
        json!({ "reason": self.reason, "message": self.message, "field": self.field })
    }

    pub(crate) fn forbidden(field: impl Into<String>, message: &str) -> Self {
        Self {
            reason: "FieldValueForbidden",
            field: field.into(),
            message: format!("Forbidden: {message}"),
        }
    }
}

impl StatusError {
    /// An error with any code and reason.
    pub(crate) fn new(code: StatusCode, reason: &str, message: impl Into<String>) -> Self {
        Self {
            code: code.as_u16(),
            reason: reason.to_owned(),
            message: message.into(),
            retry_after: None,
            details: None,
        }
    }

    fn about(self, kind: &Kind, name: &str) -> Self {
        Self {
            details: Some(Box::new(Details {
                kind: kind.plural,
                group: kind.group,
                name: name.to_owned(),
                causes: Vec::new(),
            })),
            ..self
        }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    pub(crate) fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
    }

    pub(crate) fn forbidden(kind: &Kind, name: &str, message: &str) -> Self {
        let message = format!("{} {name:?} is forbidden: {message}", kind.qualified());
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message).about(kind, name)
    }

    pub(crate) fn not_found(kind: &Kind, name: &str) -> Self {
        let message = format!("{} {name:?} not found", kind.qualified());
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).about(kind, name)
    }

    pub(crate) fn unknown_path() -> Self {
        let message = "the server could not find the requested resource";
        Self::new(StatusCode::NOT_FOUND, "NotFound", message)
    }

    pub(crate) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message)
    }

    pub(crate) fn already_exists(kind: &Kind, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", kind.qualified());
        Self::new(StatusCode::CONFLICT, "AlreadyExists", message).about(kind, name)
    }

    pub(crate) fn conflict(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} {name:?}: {why}",
            kind.qualified()
        );
        Self::new(StatusCode::CONFLICT, "Conflict", message).about(kind, name)
    }

    /// The object has another version than the request.
    pub(crate) fn modified(kind: &Kind, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version \
                   and try again";
        Self::conflict(kind, name, why)
    }

    pub(crate) fn invalid(kind: &Kind, name: &str, causes: Vec<FieldError>) -> Self {
        let all: Vec<String> = causes
            .iter()
            .map(|cause| format!("{}: {}", cause.field, cause.message))
            .collect();
        let all = match all.as_slice() {
            [only] => only.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        let qualified = match kind.group {
            "" => kind.kind.to_owned(),
            group => format!("{}.{group}", kind.kind),
        };
        let message = format!("{qualified} {name:?} is invalid: {all}");
        let mut error = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message);
        error.details = Some(Box::new(Details {
            // Here the API server uses the kind, not the plural.
            kind: kind.kind,
            group: kind.group,
            name: name.to_owned(),
            causes,
        }));
        error
    }

    pub(crate) fn unsupported_media_type(accepted: &str) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: \
             {accepted}"
        );
        let code = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        Self::new(code, "UnsupportedMediaType", message)
    }

    pub(crate) fn not_acceptable() -> Self {
        let message = "only the following media types are accepted: application/json, \
                       application/vnd.kubernetes.protobuf";
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        let message = format!("Request entity too large: limit is {limit}");
        let code = StatusCode::PAYLOAD_TOO_LARGE;
        Self::new(code, "RequestEntityTooLarge", message)
    }

    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    pub(crate) fn internal(message: impl std::fmt::Display) -> Self {
        let message = format!("Internal error occurred: {message}");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
    }

    pub(crate) fn too_new(wanted: u64, current: u64) -> Self {
        let message = format!("Too large resource version: {wanted}, current: {current}");
        let mut error = Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message);
        error.retry_after = Some(1);
        error
    }

    /// The error of a code, as an overloaded or failing server sends it.
    pub(crate) fn of_code(code: StatusCode, retry_after: Option<u32>, kind: Option<&Kind>) -> Self {
        let (reason, message) = match code.as_u16() {
            401 => ("Unauthorized", "Unauthorized".to_owned()),
            403 => ("Forbidden", "forbidden by a fault rule".to_owned()),
            404 => (
                "NotFound",
                "the server could not find the requested resource".to_owned(),
            ),
            409 => {
                let plural = kind.map_or("objects", |kind| kind.plural);
                let message = format!(
                    "Operation cannot be fulfilled on {plural}: the object has been modified; \
                     please apply your changes to the latest version and try again"
                );
                ("Conflict", message)
            }
            410 => (
                "Expired",
                "The resourceVersion for the provided watch is too old.".to_owned(),
            ),
            429 => (
                "TooManyRequests",
                "Too many requests, please try again later.".to_owned(),
            ),
            500 => (
                "InternalError",
                "Internal error occurred: etcdserver: leader changed".to_owned(),
            ),
            503 => (
                "ServiceUnavailable",
                "the server is currently unable to handle the request".to_owned(),
            ),
            504 => (
                "Timeout",
                "Timeout: request did not complete within the allotted timeout".to_owned(),
            ),
            _ => ("", code.canonical_reason().unwrap_or("unknown").to_owned()),
        };
        let mut error = Self::new(code, reason, message);
        error.retry_after = retry_after;
        error
    }

    /// The v1 Status.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        });
        let mut details = json!({});
        if let Some(about) = &self.details {
            details = json!({ "name": about.name, "kind": about.kind });
            if !about.group.is_empty() {
                details["group"] = about.group.into();
            }
            if !about.causes.is_empty() {
                let causes = about.causes.iter().map(FieldError::to_json);
                details["causes"] = causes.collect();
            }
        }
        if let Some(seconds) = self.retry_after {
            details["retryAfterSeconds"] = seconds.into();
        }
        if details.as_object().is_some_and(|fields| !fields.is_empty()) {
            status["details"] = details;
        }
        status
    }
}
