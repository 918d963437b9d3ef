//! A request for objects, from HTTP or from this process.

use bytes::Bytes;
use http::Method;
use serde_json::Value;

use crate::{
    Kind, StatusError, negotiation::ResponseFormat, protobuf, query::Query, route::Target,
    user::User,
};

/// A verb of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

impl Verb {
    /// The verb of a method on a target.
    pub(crate) fn of(method: &Method, target: &Target, query: &Query) -> Result<Self, StatusError> {
        let is_watch = query.flag("watch")?;
        Ok(match (method, &target.name) {
            (&Method::GET | &Method::HEAD, Some(_)) if !is_watch => Self::Get,
            (&Method::GET | &Method::HEAD, None) if !is_watch => Self::List,
            (&Method::GET, _) => Self::Watch,
            (&Method::POST, _) => Self::Create,
            (&Method::PUT, _) => Self::Update,
            (&Method::PATCH, _) => Self::Patch,
            (&Method::DELETE, Some(_)) => Self::Delete,
            (&Method::DELETE, None) => Self::DeleteCollection,
            _ => return Err(StatusError::method_not_allowed()),
        })
    }

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }
}

/// A request for objects.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) user: User,
    pub(crate) verb: Verb,
    pub(crate) target: Target,
    pub(crate) query: Query,
    /// `Content-Type` without parameters.
    pub(crate) media_type: String,
    pub(crate) body: Bytes,
    /// Format of the response.
    pub(crate) format: ResponseFormat,
}

impl Request {
    pub(crate) fn kind(&self) -> &'static Kind {
        self.target.kind
    }

    /// Whether nothing is stored.
    pub(crate) fn is_dry_run(&self) -> bool {
        !self.query.text("dryRun").is_empty()
    }

    /// The body as an object of this kind, or of any kind if `kind` is empty.
    pub(crate) fn object(&self, api_version: &str, kind: &str) -> Result<Value, StatusError> {
        let object = match self.media_type.as_str() {
            "" | "application/json" => {
                serde_json::from_slice(&self.body).map_err(|error| error.to_string())
            }
            protobuf::MEDIA_TYPE => protobuf::read(&self.body),
            _ => return Err(StatusError::unsupported_media_type("application/json")),
        };
        let object: Value = object.map_err(|error| {
            let message = format!("the body of the request cannot be parsed: {error}");
            StatusError::bad_request(message)
        })?;
        if !object.is_object() {
            let message = "the body of the request is not a JSON object";
            return Err(StatusError::bad_request(message));
        }
        for (field, expected, words) in [
            ("apiVersion", api_version, "API version"),
            ("kind", kind, "kind"),
        ] {
            let found = object[field].as_str().unwrap_or_default();
            if !found.is_empty() && !expected.is_empty() && found != expected {
                return Err(StatusError::bad_request(format!(
                    "the {words} in the data ({found}) does not match the expected {words} \
                     ({expected})"
                )));
            }
        }
        Ok(object)
    }
}
