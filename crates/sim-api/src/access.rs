//! Who a token is, and who may do what: the tables that tests and the command line fill.

use std::collections::BTreeMap;

use aws_lc_rs::digest::{Digest, SHA256, digest};
use serde_json::Value;

use crate::{base64, user::User};

/// Who issues tokens of service accounts, and the audience of tokens for the server itself, unless the
/// settings say otherwise.
pub(crate) const AUDIENCE: &str = "https://kubernetes.default.svc.cluster.local";

/// A statement on who may do what; the first that fits counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessRule {
    /// Of this user only.
    pub user: Option<String>,
    /// Of members of this group only.
    pub group: Option<String>,
    /// The verb, or `*`.
    pub verb: String,
    /// A plural, perhaps with a subresource, such as `nodes/proxy`; a path that is no resource; or `*`.
    pub resource: String,
    /// Whether it may be done.
    pub allow: bool,
}

impl AccessRule {
    /// Lets a user do that.
    #[must_use]
    pub fn allow(user: &str, verb: &str, resource: &str) -> Self {
        Self {
            user: Some(user.to_owned()),
            group: None,
            verb: verb.to_owned(),
            resource: resource.to_owned(),
            allow: true,
        }
    }

    /// Keeps a user from doing that.
    #[must_use]
    pub fn deny(user: &str, verb: &str, resource: &str) -> Self {
        Self {
            allow: false,
            ..Self::allow(user, verb, resource)
        }
    }

    fn fits(&self, user: &User, verb: &str, resource: &str) -> bool {
        self.user.as_ref().is_none_or(|name| *name == user.name)
            && self.group.as_ref().is_none_or(|group| user.is_in(group))
            && ["*", verb].contains(&self.verb.as_str())
            && ["*", resource].contains(&self.resource.as_str())
    }
}

/// The tables.
pub(crate) struct Access {
    tokens: BTreeMap<String, User>,
    rules: Vec<AccessRule>,
    /// What tokens of service accounts are signed with.
    secret: Digest,
}

impl Access {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            tokens: BTreeMap::new(),
            rules: Vec::new(),
            secret: digest(&SHA256, &seed.to_le_bytes()),
        }
    }

    pub(crate) fn add_token(&mut self, token: &str, user: User) {
        self.tokens.insert(token.to_owned(), user.authenticated());
    }

    pub(crate) fn remove_token(&mut self, token: &str) {
        self.tokens.remove(token);
    }

    pub(crate) fn set_rules(&mut self, rules: Vec<AccessRule>) {
        self.rules = rules;
    }

    pub(crate) fn add_rule(&mut self, rule: AccessRule) {
        self.rules.push(rule);
    }

    /// What the rules say; `None` if they say nothing.
    fn said(&self, user: &User, verb: &str, resource: &str) -> Option<bool> {
        let mut rules = self.rules.iter();
        rules
            .find(|rule| rule.fits(user, verb, resource))
            .map(|rule| rule.allow)
    }

    /// A rule allows it, whatever the authorizer of nodes says: one that agrees is enough.
    pub(crate) fn is_granted(&self, user: &User, verb: &str, resource: &str) -> bool {
        self.said(user, verb, resource) == Some(true)
    }

    /// For requests to this server: what is not forbidden is allowed to who is known.
    pub(crate) fn is_request_allowed(&self, user: &User, verb: &str, resource: &str) -> bool {
        let said = self.said(user, verb, resource);
        said.unwrap_or_else(|| user.is_authenticated())
    }

    /// For reviews: what is not allowed is forbidden, except to masters.
    pub(crate) fn is_review_allowed(&self, user: &User, verb: &str, resource: &str) -> bool {
        let said = self.said(user, verb, resource);
        said.unwrap_or_else(|| user.is_in("system:masters"))
    }

    /// The user of a token that was added; it is for this server only.
    pub(crate) fn known_user(&self, token: &str) -> Option<&User> {
        self.tokens.get(token)
    }

    /// A token of a service account, in the form of a JWT.
    pub(crate) fn issue(&self, claims: &Value) -> String {
        let header = base64::encode_url(br#"{"alg":"HS256","kid":"sim-api"}"#);
        let body = base64::encode_url(claims.to_string().as_bytes());
        let signed = format!("{header}.{body}");
        let signature = self.signature(&signed);
        format!("{signed}.{signature}")
    }

    /// Good enough for a model: no other process knows the secret.
    fn signature(&self, signed: &str) -> String {
        let secret = self.secret.as_ref();
        let digest = digest(&SHA256, &[secret, signed.as_bytes(), secret].concat());
        base64::encode_url(digest.as_ref())
    }

    /// What a token says that this server signed.
    pub(crate) fn claims(&self, token: &str) -> Option<Value> {
        let (signed, signature) = token.rsplit_once('.')?;
        if self.signature(signed) != signature {
            return None;
        }
        let (_, body) = signed.split_once('.')?;
        serde_json::from_slice(&base64::decode(body)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_signed_token_is_read_again_unless_it_was_changed() {
        let access = Access::new(1);
        let claims = json!({ "sub": "a", "aud": ["x"] });
        let token = access.issue(&claims);
        assert_eq!(access.claims(&token), Some(claims));
        assert_eq!(access.claims(&token.replace('.', ".A")), None);
        assert_eq!(Access::new(2).claims(&token), None);
        assert_eq!(access.claims("a.b"), None);
    }

    #[test]
    fn the_first_rule_that_fits_counts() {
        let mut access = Access::new(1);
        let (ann, bob) = (User::new("ann", &[]), User::new("bob", &[]));
        access.add_rule(AccessRule::deny("ann", "get", "nodes/log"));
        access.add_rule(AccessRule::allow("ann", "*", "*"));
        assert!(access.is_review_allowed(&ann, "get", "nodes/proxy"));
        assert!(!access.is_review_allowed(&ann, "get", "nodes/log"));
        assert!(!access.is_review_allowed(&bob, "get", "nodes/proxy"));
        assert!(access.is_request_allowed(&bob, "get", "nodes/proxy"));
        assert!(!access.is_request_allowed(&ann, "get", "nodes/log"));
        assert!(!access.is_request_allowed(&User::anonymous(), "get", "pods"));
    }
}
