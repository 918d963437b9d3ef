//! Who asks, and for what, in the words of the API server.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;

/// The name of somebody who shows no credentials.
pub const ANONYMOUS: &str = "system:anonymous";

/// The group of those who show no credentials.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";

/// The group of everybody else.
pub const AUTHENTICATED: &str = "system:authenticated";

/// Somebody, as the API server knows users.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    /// Name of the user.
    pub name: String,
    /// What tells this user from an earlier one of the same name; often empty.
    pub uid: String,
    /// Groups of the user.
    pub groups: Vec<String>,
    /// What else authentication found out; handed to authorisation as it is.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// Somebody who shows no credentials.
    #[must_use]
    pub fn anonymous() -> Self {
        Self {
            name: ANONYMOUS.to_owned(),
            groups: vec![UNAUTHENTICATED.to_owned()],
            ..Self::default()
        }
    }

    /// The same user as one of those who have shown who they are.
    #[must_use]
    pub(crate) fn authenticated(mut self) -> Self {
        let told = |group: &String| group == AUTHENTICATED || group == UNAUTHENTICATED;
        if !self.groups.iter().any(told) {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
    }
}

/// What a user wants to do: a verb on a sub-resource of the resource `nodes` of `v1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attributes {
    /// `create`, `get`, `update`, `patch`, `delete`, or empty for a method that has no verb.
    pub verb: &'static str,
    /// The sub-resource: `proxy`, `pods`, `metrics` and so on.
    pub subresource: &'static str,
    /// Name of the node.
    pub node: Arc<str>,
}

/// Why nobody could say who somebody is, or what somebody may. Holds no secret: it is logged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AuthError(pub String);

/// Knows who holds a bearer token.
#[async_trait]
pub trait Authenticator: Send + Sync + 'static {
    /// The user whose token this is; `None` if the token is nobody's.
    ///
    /// # Errors
    /// Nobody could say; the request is refused then.
    async fn token(&self, token: &str) -> Result<Option<User>, AuthError>;
}

/// Knows who may do what.
#[async_trait]
pub trait Authorizer: Send + Sync + 'static {
    /// True if the user may.
    ///
    /// # Errors
    /// Nobody could say; the request is refused then.
    async fn authorize(&self, user: &User, attributes: &Attributes) -> Result<bool, AuthError>;
}

/// `authorization.mode: AlwaysAllow`: whoever is let in may do everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct AlwaysAllow;

#[async_trait]
impl Authorizer for AlwaysAllow {
    async fn authorize(&self, _: &User, _: &Attributes) -> Result<bool, AuthError> {
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_authenticated_or_not_and_never_both() {
        let with = |groups: &[&str]| {
            let user = User {
                groups: groups.iter().map(ToString::to_string).collect(),
                ..User::default()
            };
            user.authenticated().groups
        };
        assert_eq!(with(&["a"]), ["a", AUTHENTICATED]);
        assert_eq!(with(&[AUTHENTICATED, "a"]), [AUTHENTICATED, "a"]);
        assert_eq!(User::anonymous().authenticated().groups, [UNAUTHENTICATED]);
    }
}
