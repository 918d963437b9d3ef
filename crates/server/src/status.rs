//! Errors as v1 Status objects.

use http::StatusCode;
use serde_json::{Value, json};

use crate::{FieldError, Resource};

/// An error response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) code: StatusCode,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    /// Resource and name of the object in question.
    details: Option<(Resource, String)>,
    /// Fields that are wrong.
    causes: Vec<FieldError>,
    /// The methods that the path allows.
    pub(crate) allow: Option<&'static str>,
}

impl ApiError {
    fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: None,
            causes: Vec::new(),
            allow: None,
        }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    pub(crate) fn not_found(resource: Resource, name: &str) -> Self {
        let message = format!("{} {name:?} not found", resource.qualified());
        let details = Some((resource, name.to_owned()));
        Self {
            details,
            ..Self::new(StatusCode::NOT_FOUND, "NotFound", message)
        }
    }

    pub(crate) fn gone(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", message)
    }

    pub(crate) fn unknown_path() -> Self {
        let message = "the server could not find the requested resource";
        Self::new(StatusCode::NOT_FOUND, "NotFound", message)
    }

    /// Pods can't be written.
    pub(crate) fn from_manifests(allow: &'static str) -> Self {
        let message = "pods come from manifests: edit the file in the manifest directory, or what the \
                       manifest URL serves; it can't be done through this node's API";
        Self {
            allow: Some(allow),
            ..Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message)
        }
    }

    pub(crate) fn forbidden(message: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message)
    }

    /// An error that another component answered with in plain text.
    pub(crate) fn of_code(code: StatusCode, message: impl Into<String>) -> Self {
        let reason = match code {
            StatusCode::BAD_REQUEST => "BadRequest",
            StatusCode::FORBIDDEN => "Forbidden",
            StatusCode::NOT_FOUND => "NotFound",
            StatusCode::METHOD_NOT_ALLOWED => "MethodNotAllowed",
            StatusCode::TOO_MANY_REQUESTS => "TooManyRequests",
            StatusCode::SERVICE_UNAVAILABLE => "ServiceUnavailable",
            StatusCode::GATEWAY_TIMEOUT => "Timeout",
            StatusCode::INTERNAL_SERVER_ERROR => "InternalError",
            _ => "",
        };
        Self::new(code, reason, message)
    }

    pub(crate) fn not_allowed(allow: &'static str) -> Self {
        let message = format!("this can't be done here; allowed: {allow}");
        Self {
            allow: Some(allow),
            ..Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message)
        }
    }

    pub(crate) fn unsupported_media_type(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        let code = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        Self::new(code, "UnsupportedMediaType", message)
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        let message = format!("Request entity too large: limit is {limit}");
        let code = StatusCode::PAYLOAD_TOO_LARGE;
        Self::new(code, "RequestEntityTooLarge", message)
    }

    pub(crate) fn conflict(resource: Resource, name: &str, message: String) -> Self {
        Self {
            details: Some((resource, name.to_owned())),
            ..Self::new(StatusCode::CONFLICT, "Conflict", message)
        }
    }

    pub(crate) fn invalid(resource: Resource, name: &str, causes: Vec<FieldError>) -> Self {
        let all: Vec<String> = causes
            .iter()
            .map(|cause| format!("{}: {}", cause.field, cause.message))
            .collect();
        let all = match all.as_slice() {
            [only] => only.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        let message = format!("{} {name:?} is invalid: {all}", resource.kind());
        Self {
            details: Some((resource, name.to_owned())),
            causes,
            ..Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message)
        }
    }

    pub(crate) fn not_acceptable() -> Self {
        let message = "only the following media types are accepted: application/json, \
                       application/json;as=Table;v=v1;g=meta.k8s.io";
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
    }

    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
    }

    /// The v1 Status.
    pub(crate) fn to_json(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code.as_u16(),
        });
        if let Some((resource, name)) = &self.details {
            status["details"] = json!({ "name": name, "kind": resource.plural() });
            if !resource.group().is_empty() {
                status["details"]["group"] = resource.group().into();
            }
            if !self.causes.is_empty() {
                // Here the API server names the kind, not the plural.
                status["details"]["kind"] = resource.kind().into();
                let cause = |error: &FieldError| {
                    json!({
                        "reason": error.reason, "message": error.message, "field": error.field,
                    })
                };
                status["details"]["causes"] = self.causes.iter().map(cause).collect();
            }
        }
        status
    }
}
