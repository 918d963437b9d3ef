//! Authentication: none, basic, or a token of the registry's token server.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderValue, Method, Request, header};
use http_body_util::Full;
use serde::Deserialize;
use tokio::sync::Mutex;

use super::{
    challenge::{self, Challenge},
    error_response,
    origin::{self, Origin},
    peer::HostConnection,
    transport::{RegistryResponse, unsent},
};
use crate::{Credentials, PullError, PullErrorKind};

/// Maximum size of a token server's response.
const MOST: u64 = 1 << 20;
/// The client ID for token servers.
const CLIENT: &str = "rubelet";

/// The authentication of one pull.
pub(super) struct Authorizer {
    credentials: Option<Credentials>,
    /// The scope that the pull needs.
    scope: String,
    /// The last `Authorization` that was sent.
    shown: Mutex<Option<HeaderValue>>,
}

#[derive(Deserialize)]
struct Token {
    #[serde(default)]
    token: String,
    #[serde(default)]
    access_token: String,
}

impl Authorizer {
    pub(super) fn new(credentials: Option<Credentials>, scope: String) -> Self {
        let shown = match &credentials {
            Some(Credentials::Registry(token)) => secret(&format!("Bearer {token}")),
            _ => None,
        };
        Self {
            credentials,
            scope,
            shown: Mutex::new(shown),
        }
    }

    pub(super) async fn shown(&self) -> Option<HeaderValue> {
        self.shown.lock().await.clone()
    }

    /// Answers the challenge of `refused`, whose request had the header `shown`. `false` if it
    /// cannot.
    pub(super) async fn renew(
        &self,
        asked: (&HostConnection, &Origin),
        refused: &RegistryResponse,
        shown: Option<&HeaderValue>,
    ) -> Result<bool, PullError> {
        let mut current = self.shown.lock().await;
        if current.as_ref() != shown {
            // Another request of the pull has answered it already.
            return Ok(true);
        }
        let headers = refused.headers.get_all(header::WWW_AUTHENTICATE);
        let headers = headers.iter().filter_map(|value| value.to_str().ok());
        let challenges: Vec<Challenge> = headers.flat_map(challenge::parse).collect();
        let bearer = challenges.iter().find_map(|challenge| match challenge {
            Challenge::Bearer {
                realm,
                service,
                scope,
            } => Some((realm, service, scope)),
            Challenge::Basic => None,
        });
        if let Some((realm, service, scope)) = bearer
            && !matches!(self.credentials, Some(Credentials::Registry(_)))
        {
            let scope = scope.as_ref().unwrap_or(&self.scope);
            let token = self.token(asked, realm, service.as_deref(), scope).await?;
            let header = secret(&format!("Bearer {token}"));
            // The same token again would be refused again.
            let is_new = header.is_some() && header != *current;
            *current = header;
            return Ok(is_new);
        }
        if challenges.contains(&Challenge::Basic)
            && let Some(Credentials::Basic { username, password }) = &self.credentials
        {
            let header = basic(username, password);
            let is_new = header.is_some() && header != *current;
            *current = header;
            return Ok(is_new);
        }
        Ok(false)
    }

    /// Requests a token from the token server that the registry names. It gets the credentials, so
    /// it must be as secure as the registry.
    async fn token(
        &self,
        (peer, registry): (&HostConnection, &Origin),
        realm: &str,
        service: Option<&str>,
        scope: &str,
    ) -> Result<String, PullError> {
        let (_, server) = origin::parse(realm, "the registry's token server")?;
        if registry.https && !server.https {
            let message = format!(
                "{} requests credentials over plain HTTP at {}, which is refused",
                registry.authority(),
                server.authority()
            );
            return Err(PullError::new(PullErrorKind::Refused, message));
        }
        let mut fields = vec![("scope", scope)];
        fields.extend(service.map(|service| ("service", service)));
        let made = match &self.credentials {
            Some(Credentials::Identity(token)) => {
                fields.extend([
                    ("grant_type", "refresh_token"),
                    ("client_id", CLIENT),
                    ("refresh_token", token.as_str()),
                ]);
                let form = HeaderValue::from_static("application/x-www-form-urlencoded");
                Request::post(realm)
                    .header(header::CONTENT_TYPE, form)
                    .body(Full::new(Bytes::from(encode(&fields))))
            }
            credentials => {
                let mut authorization = None;
                if let Some(Credentials::Basic { username, password }) = credentials {
                    fields.push(("account", username));
                    authorization = basic(username, password);
                }
                let joint = if realm.contains('?') { '&' } else { '?' };
                let mut request = Request::get(format!("{realm}{joint}{}", encode(&fields)));
                if let Some(authorization) = authorization {
                    request = request.header(header::AUTHORIZATION, authorization);
                }
                request.body(Full::default())
            }
        };
        let request = made.map_err(|error| unsent(server.authority(), error))?;
        let method = request.method().clone();
        let answer = peer.send(request, peer.patience(false)).await?;
        // A redirect is not followed: no token server needs one, and it could leak the credentials.
        if !answer.status.is_success() {
            return Err(refused(&method, realm, answer).await);
        }
        let bytes = answer.body.all(MOST, "token").await?;
        let token: Option<Token> = serde_json::from_slice(&bytes).ok();
        let token = token.map(|token| match token.token {
            empty if empty.is_empty() => token.access_token,
            token => token,
        });
        token.filter(|token| !token.is_empty()).ok_or_else(|| {
            let message = format!("no token in the response of {realm}");
            PullError::new(PullErrorKind::Unavailable, message)
        })
    }
}

async fn refused(method: &Method, realm: &str, answer: RegistryResponse) -> PullError {
    error_response::refusal(method, realm, answer).await
}

fn basic(username: &str, password: &str) -> Option<HeaderValue> {
    let both = STANDARD.encode(format!("{username}:{password}"));
    secret(&format!("Basic {both}"))
}

fn secret(text: &str) -> Option<HeaderValue> {
    let mut header = HeaderValue::from_str(text).ok()?;
    header.set_sensitive(true);
    Some(header)
}

/// `key=value&…`, for forms and queries.
pub(super) fn encode(fields: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (key, value) in fields {
        if !text.is_empty() {
            text.push('&');
        }
        text.push_str(key);
        text.push('=');
        for byte in value.bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                text.push(char::from(byte));
            } else {
                text.push_str(&format!("%{byte:02X}"));
            }
        }
    }
    text
}
