//! One request from its head to the end of its response.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Uri, header};
use jiff::Timestamp;
use rubelet_http_core::{clock, peer::Peer, user::User};

use super::{
    attributes::RequestAttributes,
    event::{AuditEvent, AuditOutcome, Stage},
    log::AuditLog,
    policy::{AuditLevel, OmittedStages},
    redact,
};

/// The header with the identifier of a request, in requests and responses.
pub const AUDIT_ID: &str = "audit-id";

/// Longest identifier that is accepted from a client: the API server's own log truncates to this.
const LONGEST_ID: usize = 64;

/// Length of a `User-Agent` that is kept while its request is in progress.
const KEPT_USER_AGENT: usize = 2048;

/// A request that is recorded. It ends when this is dropped.
pub struct AuditedRequest {
    log: Arc<AuditLog>,
    id: String,
    attributes: RequestAttributes,
    uri: String,
    user_agent: Vec<u8>,
    peer: Peer,
    received: Timestamp,
    user: Option<User>,
    decision: Option<(bool, String)>,
    answered: Option<AuditedResponse>,
}

#[derive(Debug, Clone, Copy)]
struct AuditedResponse {
    code: u16,
    level: AuditLevel,
    omitted: OmittedStages,
}

impl AuditedRequest {
    /// The head of a request has arrived.
    #[must_use]
    pub fn begin(
        log: &Arc<AuditLog>,
        uri: &Uri,
        headers: &HeaderMap,
        peer: Peer,
        attributes: RequestAttributes,
    ) -> Self {
        let user_agent = headers.get(header::USER_AGENT);
        let user_agent = user_agent.map_or(&b""[..], HeaderValue::as_bytes);
        Self {
            log: Arc::clone(log),
            id: log.new_id(),
            attributes,
            uri: redact::request_uri(uri),
            user_agent: user_agent[..user_agent.len().min(KEPT_USER_AGENT)].to_vec(),
            peer,
            received: clock::now(),
            user: None,
            decision: None,
            answered: None,
        }
    }

    /// The user is known.
    pub fn identified(&mut self, user: User) {
        self.user = Some(user);
    }

    /// Records the authorization decision and its reason.
    pub fn decided(&mut self, allowed: bool, reason: &str) {
        self.decision = Some((allowed, reason.to_owned()));
    }

    /// Uses the identifier that the client sent. Only for authorized, authenticated clients:
    /// anybody else could make two requests look like one.
    pub fn take_id(&mut self, headers: &HeaderMap) {
        let id = headers.get(AUDIT_ID).and_then(|id| id.to_str().ok());
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
        if let Some(id) = id
            && (1..=LONGEST_ID).contains(&id.len())
            && id.chars().all(plain)
        {
            id.clone_into(&mut self.id);
        }
    }

    /// The response begins. Returns the identifier, for its header.
    pub fn answered(&mut self, code: u16) -> Option<HeaderValue> {
        let (level, omitted) = self
            .log
            .policy()
            .decide(self.user.as_ref(), &self.attributes);
        self.answered = Some(AuditedResponse {
            code,
            level,
            omitted,
        });
        let starts = self.attributes.long_running && code < 400 && !omitted.response_started;
        if starts && level == AuditLevel::Metadata {
            self.record(Stage::ResponseStarted, AuditOutcome::Answered(code));
        }
        HeaderValue::from_str(&self.id).ok()
    }

    fn record(&self, stage: Stage, outcome: AuditOutcome<'_>) {
        let decision = self.decision.as_ref();
        let event = AuditEvent {
            id: &self.id,
            stage,
            uri: &self.uri,
            verb: &self.attributes.verb,
            user: self.user.as_ref(),
            peer: &self.peer,
            user_agent: &self.user_agent,
            object: self.attributes.resource.as_ref(),
            outcome,
            decision: decision.map(|(allowed, reason)| (*allowed, reason.as_str())),
            received: self.received,
            now: clock::now(),
        };
        self.log.record(event.line());
    }
}

impl Drop for AuditedRequest {
    fn drop(&mut self) {
        let answered = self.answered.unwrap_or_else(|| {
            let (level, omitted) = self
                .log
                .policy()
                .decide(self.user.as_ref(), &self.attributes);
            AuditedResponse {
                code: 0,
                level,
                omitted,
            }
        });
        if answered.level == AuditLevel::None || answered.omitted.response_complete {
            return;
        }
        let outcome = match answered.code {
            // The request may have been carried out all the same.
            0 => AuditOutcome::Failed(None, "the connection ended before the answer began"),
            code => AuditOutcome::Answered(code),
        };
        self.record(Stage::ResponseComplete, outcome);
    }
}

/// Records input that is not a valid request: the server has answered it by itself.
pub fn malformed(log: &Arc<AuditLog>, peer: Peer, error: &hyper::Error) {
    let code = match error {
        error if error.is_parse_too_large() => 431,
        error if error.is_parse() => 400,
        _ => return,
    };
    let message = error.to_string();
    let attributes = RequestAttributes::default();
    let (level, omitted) = log.policy().decide(None, &attributes);
    if level == AuditLevel::None || omitted.response_complete {
        return;
    }
    let now = clock::now();
    let event = AuditEvent {
        id: &log.new_id(),
        stage: Stage::ResponseComplete,
        uri: "",
        verb: "",
        user: None,
        peer: &peer,
        user_agent: b"",
        object: None,
        outcome: AuditOutcome::Failed(Some(code), &message),
        decision: None,
        received: now,
        now,
    };
    log.record(event.line());
}

/// The user of a unix socket's client: `unix:uid:UID` in the group `unix:gid:GID`, with the process
/// as an extra value.
#[must_use]
pub fn local_user(peer: &Peer) -> Option<User> {
    let credentials = peer.credentials()?;
    let pid = credentials.pid.map(|pid| {
        let key = "node.rubelet.dev/pid".to_owned();
        (key, vec![pid.to_string()])
    });
    Some(User {
        name: format!("unix:uid:{}", credentials.uid),
        uid: credentials.uid.to_string(),
        groups: vec![format!("unix:gid:{}", credentials.gid)],
        extra: pid.into_iter().collect(),
    })
}
