//! Access control.

use std::net::SocketAddr;

use super::request::Request;

/// The only user.
pub const USER: &str = "someone";
/// The user's password.
pub const PASSWORD: &str = "a:secret";
/// `someone:a:secret` in base64.
pub(super) const BASIC: &str = "Basic c29tZW9uZTphOnNlY3JldA==";
/// The token for the right password, or for anybody if none is needed.
const TOKEN: &str = "a-token-of-the-tests";

/// Who may pull.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Access {
    /// Anybody.
    #[default]
    Anonymous,
    /// Clients that send the password with each request.
    Basic,
    /// Clients that send a token, which is issued for the password.
    Token,
    /// Clients that send a token, which is issued to anybody, as in large public registries.
    AnonymousToken,
}

impl Access {
    /// Whether the request is allowed.
    pub(super) fn allows(self, request: &Request) -> bool {
        let said = request.field("authorization");
        match self {
            Self::Anonymous => true,
            Self::Basic => said == Some(BASIC),
            Self::Token | Self::AnonymousToken => said == Some(&format!("Bearer {TOKEN}")),
        }
    }

    /// The `WWW-Authenticate` challenge.
    pub(super) fn challenge(self, address: SocketAddr, repository: &str) -> Option<String> {
        match self {
            Self::Anonymous => None,
            Self::Basic => Some("Basic realm=\"tests\"".into()),
            Self::Token | Self::AnonymousToken => Some(format!(
                "Bearer realm=\"http://{address}/token\",service=\"tests, and more\",\
                 scope=\"repository:{repository}:pull\""
            )),
        }
    }

    /// The response to a token request, in JSON; `None` if it is rejected.
    pub(super) fn token(self, request: &Request) -> Option<String> {
        let is_for_pull = request.query.contains("scope=repository%3A")
            || request.query.contains("scope=repository:");
        let known = match self {
            Self::Token => request.field("authorization") == Some(BASIC),
            Self::AnonymousToken => true,
            Self::Anonymous | Self::Basic => false,
        };
        (is_for_pull && known).then(|| format!("{{\"token\":\"{TOKEN}\",\"expires_in\":300}}"))
    }
}
