//! Users and what they request, in the terms of the API server.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;

/// The name of a user without credentials.
pub const ANONYMOUS: &str = "system:anonymous";

/// The group of users without credentials.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";

/// The group of all other users.
pub(crate) const AUTHENTICATED: &str = "system:authenticated";

/// A user, as the API server represents it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    /// Name of the user.
    pub name: String,
    /// Distinguishes this user from an earlier one of the same name; often empty.
    pub uid: String,
    /// Groups of the user.
    pub groups: Vec<String>,
    /// Extra values from authentication; passed to authorization unchanged.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// A user without credentials.
    #[must_use]
    pub fn anonymous() -> Self {
        Self {
            name: ANONYMOUS.to_owned(),
            groups: vec![UNAUTHENTICATED.to_owned()],
            ..Self::default()
        }
    }

    /// The same user in the group of authenticated users.
    #[must_use]
    pub fn authenticated(mut self) -> Self {
        let told = |group: &String| group == AUTHENTICATED || group == UNAUTHENTICATED;
        if !self.groups.iter().any(told) {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
    }
}

/// The request to authorize: a verb on a sub-resource of the resource `nodes` of `v1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attributes {
    /// `create`, `get`, `update`, `patch`, `delete`, or empty for a method that has no verb.
    pub verb: &'static str,
    /// The sub-resource: `proxy`, `pods`, `metrics` and so on.
    pub subresource: &'static str,
    /// Name of the node.
    pub node: Arc<str>,
}

/// Why authentication or authorization failed. Holds no secret: it is logged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AuthError(pub String);

/// Authenticates bearer tokens.
#[async_trait]
pub trait Authenticator: Send + Sync + 'static {
    /// The user of this token; `None` if the token is invalid.
    ///
    /// # Errors
    /// The answer is unknown; the request is rejected then.
    async fn token(&self, token: &str) -> Result<Option<User>, AuthError>;
}

/// Authorizes requests.
#[async_trait]
pub trait Authorizer: Send + Sync + 'static {
    /// True if the user is allowed to.
    ///
    /// # Errors
    /// The answer is unknown; the request is rejected then.
    async fn authorize(&self, user: &User, attributes: &Attributes) -> Result<bool, AuthError>;
}

/// `authorization.mode: AlwaysAllow`: every authenticated user may do everything.
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
