//! Credentials for a registry. Never printed.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};

/// Credentials for one pull, from CRI's `AuthConfig`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Credentials {
    /// A user and its password, also as the `auth` of a docker configuration.
    Basic {
        /// The user.
        username: String,
        /// The password, or an access token instead.
        password: String,
    },
    /// A token that the registry's token server exchanges for one of the registry.
    Identity(String),
    /// A bearer token for the registry itself.
    Registry(String),
}

/// The fields of CRI's `AuthConfig`; empty ones are unset.
#[derive(Clone, Copy, Default)]
pub struct AuthFields<'a> {
    /// User.
    pub username: &'a str,
    /// Password.
    pub password: &'a str,
    /// `user:password` in base64.
    pub auth: &'a str,
    /// The registry that the credentials are for; empty means any.
    pub server_address: &'a str,
    /// Token for the token server.
    pub identity_token: &'a str,
    /// Token for the registry.
    pub registry_token: &'a str,
}

/// Why credentials are invalid. Never contains them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialsError {
    /// `auth` is not base64, or has no colon.
    #[error("the `auth` of the credentials is not `user:password` in base64")]
    Auth,
    /// The fields are incomplete.
    #[error("the credentials have neither a user, nor an `auth`, nor a token")]
    Empty,
}

impl Credentials {
    /// Reads CRI's `AuthConfig`. `None` if it is for another registry than `registry`, or all
    /// fields are empty: then the pull is anonymous, as in containerd.
    ///
    /// # Errors
    /// The fields contradict each other, or are malformed.
    pub fn from_auth(
        fields: &AuthFields<'_>,
        registry: &str,
    ) -> Result<Option<Self>, CredentialsError> {
        let AuthFields {
            username,
            password,
            auth,
            server_address,
            identity_token,
            registry_token,
        } = *fields;
        if !server_address.is_empty() && !is_for(server_address, registry) {
            return Ok(None);
        }
        if !username.is_empty() {
            return Ok(Some(Self::Basic {
                username: username.to_owned(),
                password: password.to_owned(),
            }));
        }
        if !identity_token.is_empty() {
            return Ok(Some(Self::Identity(identity_token.to_owned())));
        }
        if !auth.is_empty() {
            // Some writers pad the password with zero bytes; docker trims them, too.
            let text = STANDARD.decode(auth.trim()).ok();
            let text = text.and_then(|bytes| String::from_utf8(bytes).ok());
            let (username, password) = text
                .as_deref()
                .and_then(|text| text.split_once(':'))
                .ok_or(CredentialsError::Auth)?;
            return Ok(Some(Self::Basic {
                username: username.to_owned(),
                password: password.trim_matches('\0').to_owned(),
            }));
        }
        if !registry_token.is_empty() {
            return Ok(Some(Self::Registry(registry_token.to_owned())));
        }
        if password.is_empty() {
            Ok(None)
        } else {
            Err(CredentialsError::Empty)
        }
    }
}

/// Reports whether credentials for `server` (a host, or a URL as docker's configuration has it) are
/// for `registry`.
fn is_for(server: &str, registry: &str) -> bool {
    let rest = server
        .strip_prefix("https://")
        .or_else(|| server.strip_prefix("http://"))
        .unwrap_or(server);
    let host = rest.split('/').next().unwrap_or_default();
    crate::reference::canonical_registry(host) == crate::reference::canonical_registry(registry)
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Basic { .. } => "Credentials::Basic(..)",
            Self::Identity(_) => "Credentials::Identity(..)",
            Self::Registry(_) => "Credentials::Registry(..)",
        })
    }
}

impl fmt::Debug for AuthFields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AuthFields(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn basic(username: &str, password: &str) -> Option<Credentials> {
        Some(Credentials::Basic {
            username: username.into(),
            password: password.into(),
        })
    }

    #[test]
    fn each_way_to_give_credentials_is_read() {
        let none = AuthFields::default();
        let read = |fields| Credentials::from_auth(&fields, "r.test:5000").unwrap();
        assert_eq!(read(none), None);
        let user = AuthFields {
            username: "u",
            password: "p",
            ..none
        };
        assert_eq!(read(user), basic("u", "p"));
        // u:p:q
        let auth = AuthFields {
            auth: "dTpwOnE=",
            ..none
        };
        assert_eq!(read(auth), basic("u", "p:q"));
        let identity = AuthFields {
            identity_token: "i",
            ..none
        };
        assert_eq!(read(identity), Some(Credentials::Identity("i".into())));
        let registry = AuthFields {
            registry_token: "r",
            ..none
        };
        assert_eq!(read(registry), Some(Credentials::Registry("r".into())));
        for (server, given) in [
            ("r.test:5000", true),
            ("https://r.test:5000/v2/", true),
            ("r.test", false),
            ("https://other.test", false),
        ] {
            let fields = AuthFields {
                server_address: server,
                ..user
            };
            assert_eq!(read(fields).is_some(), given, "{server}");
        }
    }

    #[test]
    fn nonsense_is_refused_without_showing_it() {
        for auth in ["###", "dXNlcg==", "/w=="] {
            let fields = AuthFields {
                auth,
                ..AuthFields::default()
            };
            let error = Credentials::from_auth(&fields, "r").unwrap_err();
            assert!(!error.to_string().contains(auth));
        }
        let secret = basic("u", "p").unwrap();
        assert_eq!(format!("{secret:?}"), "Credentials::Basic(..)");
    }
}
