//! Errors as v1 Status objects.

use http::StatusCode;
use serde_json::{Value, json};

use crate::{field_error::FieldError, resource::Resource};

/// An error response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    /// The status code.
    pub code: StatusCode,
    /// `reason` of the Status, for programs.
    pub reason: &'static str,
    /// The message, for people.
    pub message: String,
    /// Resource and name of the object in question.
    details: Option<(Resource, String)>,
    /// Fields that are wrong.
    causes: Vec<FieldError>,
    /// The methods that the path allows.
    pub allow: Option<&'static str>,
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

    /// The request makes no sense.
    #[must_use]
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// There is no such object.
    #[must_use]
    pub fn not_found(resource: Resource, name: &str) -> Self {
        let message = format!("{} {name:?} not found", resource.qualified());
        let details = Some((resource, name.to_owned()));
        Self {
            details,
            ..Self::new(StatusCode::NOT_FOUND, "NotFound", message)
        }
    }

    /// Something is not there that has no name in the API.
    #[must_use]
    pub fn gone(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", message)
    }

    /// Nothing is served at that path.
    #[must_use]
    pub fn unknown_path() -> Self {
        let message = "the server could not find the requested resource";
        Self::new(StatusCode::NOT_FOUND, "NotFound", message)
    }

    /// Pods can't be written.
    #[must_use]
    pub fn from_manifests(allow: &'static str) -> Self {
        let message = "pods come from manifests: edit the file in the manifest directory, or what the \
                       manifest URL serves; it cannot be done through this node's API";
        Self {
            allow: Some(allow),
            ..Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message)
        }
    }

    /// The client may not do that.
    #[must_use]
    pub fn forbidden(message: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message)
    }

    /// An error that another component answered with in plain text.
    #[must_use]
    pub fn of_code(code: StatusCode, message: impl Into<String>) -> Self {
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

    /// The path does not allow the method; `allow` lists those that it allows.
    #[must_use]
    pub fn not_allowed(allow: &'static str) -> Self {
        let message = format!("this cannot be done here; allowed: {allow}");
        Self {
            allow: Some(allow),
            ..Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message)
        }
    }

    /// The body has a media type that is not accepted.
    #[must_use]
    pub fn unsupported_media_type(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        let code = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        Self::new(code, "UnsupportedMediaType", message)
    }

    /// The body is longer than `limit` bytes.
    #[must_use]
    pub fn too_large(limit: usize) -> Self {
        let message = format!("Request entity too large: limit is {limit}");
        let code = StatusCode::PAYLOAD_TOO_LARGE;
        Self::new(code, "RequestEntityTooLarge", message)
    }

    /// The state of the object does not allow the change.
    #[must_use]
    pub fn conflict(resource: Resource, name: &str, message: String) -> Self {
        Self {
            details: Some((resource, name.to_owned())),
            ..Self::new(StatusCode::CONFLICT, "Conflict", message)
        }
    }

    /// The change would make fields of the object invalid.
    #[must_use]
    pub fn invalid(resource: Resource, name: &str, causes: Vec<FieldError>) -> Self {
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

    /// The client accepts no form that is served.
    #[must_use]
    pub fn not_acceptable() -> Self {
        let message = "only the following media types are accepted: application/json, \
                       application/json;as=Table;v=v1;g=meta.k8s.io";
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
    }

    /// The requested version is too old.
    #[must_use]
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    /// The node failed.
    #[must_use]
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
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
