//! One event as a line of JSON.

use jiff::Timestamp;
use rubelet_http_core::{peer::Peer, user::User};
use serde_json::{Map, Value, json};

use super::{
    attributes::ResourceRef,
    redact::{ascii, bounded},
};

/// Longest `User-Agent`, as in the API server's log.
const LONGEST_USER_AGENT: usize = 1024;
/// Longest name of a user, a group, an object.
const LONGEST_NAME: usize = 256;
/// Longest text of a reason.
const LONGEST_REASON: usize = 512;
/// Maximum number of recorded groups and extra values of a user.
const MOST: usize = 32;

/// The stages that are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The response of a long-running request begins.
    ResponseStarted,
    /// The response is complete or aborted.
    ResponseComplete,
}

/// An audit event of a request at a stage.
pub(crate) struct AuditEvent<'a> {
    pub(crate) id: &'a str,
    pub(crate) stage: Stage,
    pub(crate) uri: &'a str,
    pub(crate) verb: &'a str,
    pub(crate) user: Option<&'a User>,
    pub(crate) peer: &'a Peer,
    pub(crate) user_agent: &'a [u8],
    pub(crate) object: Option<&'a ResourceRef>,
    pub(crate) outcome: AuditOutcome<'a>,
    /// The authorization decision, and its reason.
    pub(crate) decision: Option<(bool, &'a str)>,
    pub(crate) received: Timestamp,
    pub(crate) now: Timestamp,
}

/// The outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuditOutcome<'a> {
    /// It was answered with this code.
    Answered(u16),
    /// There is no response, or not the one that the client requested.
    Failed(Option<u16>, &'a str),
}

impl AuditEvent<'_> {
    /// The line, with its end.
    pub(crate) fn line(&self) -> String {
        let mut event = Map::new();
        let mut set = |key: &str, value: Value| {
            let empty = match &value {
                Value::Null => true,
                Value::String(text) => text.is_empty(),
                Value::Array(list) => list.is_empty(),
                Value::Object(fields) => fields.is_empty(),
                _ => false,
            };
            if !empty {
                event.insert(key.to_owned(), value);
            }
        };
        set("kind", "Event".into());
        set("apiVersion", "audit.k8s.io/v1".into());
        set("level", "Metadata".into());
        set("auditID", self.id.into());
        set(
            "stage",
            match self.stage {
                Stage::ResponseStarted => "ResponseStarted",
                Stage::ResponseComplete => "ResponseComplete",
            }
            .into(),
        );
        set("requestURI", self.uri.into());
        set("verb", bounded(self.verb, LONGEST_NAME).into());
        let address = self.peer.address();
        set(
            "sourceIPs",
            address.iter().map(ToString::to_string).collect(),
        );
        let user_agent = String::from_utf8_lossy(self.user_agent);
        set("userAgent", bounded(&user_agent, LONGEST_USER_AGENT).into());
        set("objectRef", self.object.map_or(Value::Null, object));
        set("responseStatus", self.status());
        set("requestReceivedTimestamp", time(self.received));
        set("stageTimestamp", time(self.now));
        if let Some((allowed, reason)) = self.decision {
            let decision = if allowed { "allow" } else { "forbid" };
            set(
                "annotations",
                json!({
                    "authorization.k8s.io/decision": decision,
                    "authorization.k8s.io/reason": bounded(reason, LONGEST_REASON),
                }),
            );
        }
        // If no user is known the field is present and empty, as in the API server.
        event.insert("user".to_owned(), self.user.map_or(json!({}), user));
        let mut line = ascii(&Value::Object(event).to_string());
        line.push('\n');
        line
    }

    fn status(&self) -> Value {
        let (code, message) = match self.outcome {
            AuditOutcome::Answered(code) => (Some(code), ""),
            AuditOutcome::Failed(code, message) => (code, message),
        };
        let mut status = json!({ "metadata": {} });
        if let Some(code) = code {
            status["code"] = code.into();
        }
        if code.is_none_or(|code| code >= 400) {
            status["status"] = "Failure".into();
        }
        let reason = match code {
            Some(400) => "BadRequest",
            Some(401) => "Unauthorized",
            Some(403) => "Forbidden",
            Some(404) => "NotFound",
            Some(405) => "MethodNotAllowed",
            Some(409) => "Conflict",
            Some(413 | 431) => "RequestEntityTooLarge",
            Some(422) => "Invalid",
            Some(500) => "InternalError",
            _ => "",
        };
        for (key, text) in [("reason", reason), ("message", message)] {
            if !text.is_empty() {
                status[key] = bounded(text, LONGEST_REASON).into();
            }
        }
        status
    }
}

fn time(at: Timestamp) -> Value {
    format!("{at:.6}").into()
}

fn object(of: &ResourceRef) -> Value {
    let mut object = Map::new();
    for (key, text) in [
        ("resource", of.resource),
        ("namespace", &of.namespace),
        ("name", &of.name),
        ("apiGroup", of.group),
        ("apiVersion", of.version),
        ("subresource", of.subresource),
    ] {
        if !text.is_empty() {
            object.insert(key.to_owned(), bounded(text, LONGEST_NAME).into());
        }
    }
    Value::Object(object)
}

fn user(user: &User) -> Value {
    let list = |texts: &[String]| -> Value {
        let texts = texts.iter().take(MOST);
        texts.map(|text| bounded(text, LONGEST_NAME)).collect()
    };
    let mut json = json!({ "username": bounded(&user.name, LONGEST_NAME) });
    if !user.uid.is_empty() {
        json["uid"] = bounded(&user.uid, LONGEST_NAME).into();
    }
    if !user.groups.is_empty() {
        json["groups"] = list(&user.groups);
    }
    let extra = user.extra.iter().take(MOST);
    let extra: Map<String, Value> = extra
        .map(|(key, values)| (bounded(key, LONGEST_NAME), list(values)))
        .collect();
    if !extra.is_empty() {
        json["extra"] = extra.into();
    }
    json
}
