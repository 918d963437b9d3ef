//! Tables of tokens and of access rules, filled by tests and the command line.

use std::collections::BTreeMap;

use aws_lc_rs::digest::{Digest, SHA256, digest};
use serde_json::Value;

use crate::{base64, user::User};

/// Issuer of service account tokens, and the default audience of tokens for the server itself.
pub(crate) const AUDIENCE: &str = "https://kubernetes.default.svc.cluster.local";

/// An access rule; the first one that matches is applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessRule {
    /// Only for this user.
    pub user: Option<String>,
    /// Only for members of this group.
    pub group: Option<String>,
    /// The verb, or `*`.
    pub verb: String,
    /// A plural, optionally with a subresource, such as `nodes/proxy`; a non-resource path; or `*`.
    pub resource: String,
    /// Whether it is allowed.
    pub allow: bool,
}

impl AccessRule {
    /// Allows this to a user.
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

    /// Denies this to a user.
    #[must_use]
    pub fn deny(user: &str, verb: &str, resource: &str) -> Self {
        Self {
            allow: false,
            ..Self::allow(user, verb, resource)
        }
    }

    fn matches(&self, user: &User, verb: &str, resource: &str) -> bool {
        self.user.as_ref().is_none_or(|name| *name == user.name)
            && self.group.as_ref().is_none_or(|group| user.is_in(group))
            && ["*", verb].contains(&self.verb.as_str())
            && ["*", resource].contains(&self.resource.as_str())
    }
}

/// Tokens and access rules.
pub(crate) struct Access {
    tokens: BTreeMap<String, User>,
    rules: Vec<AccessRule>,
    /// The key that signs service account tokens.
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

    /// The decision of the first rule that matches; `None` if there is none.
    fn decision(&self, user: &User, verb: &str, resource: &str) -> Option<bool> {
        let mut rules = self.rules.iter();
        rules
            .find(|rule| rule.matches(user, verb, resource))
            .map(|rule| rule.allow)
    }

    /// Whether a rule allows it, in which case the node authorizer does not matter: one authorizer
    /// that allows is enough.
    pub(crate) fn is_granted(&self, user: &User, verb: &str, resource: &str) -> bool {
        self.decision(user, verb, resource) == Some(true)
    }

    /// For requests to this server: authenticated users may do what is not denied.
    pub(crate) fn is_request_allowed(&self, user: &User, verb: &str, resource: &str) -> bool {
        let decision = self.decision(user, verb, resource);
        decision.unwrap_or_else(|| user.is_authenticated())
    }

    /// For reviews: what is not allowed is denied, except to `system:masters`.
    pub(crate) fn is_review_allowed(&self, user: &User, verb: &str, resource: &str) -> bool {
        let decision = self.decision(user, verb, resource);
        decision.unwrap_or_else(|| user.is_in("system:masters"))
    }

    /// The user of a token that was added. Such a token has no audience other than this server.
    pub(crate) fn known_user(&self, token: &str) -> Option<&User> {
        self.tokens.get(token)
    }

    /// Signs a service account token, a JWT.
    pub(crate) fn issue(&self, claims: &Value) -> String {
        let header = base64::encode_url(br#"{"alg":"HS256","kid":"sim-api"}"#);
        let body = base64::encode_url(claims.to_string().as_bytes());
        let signed = format!("{header}.{body}");
        let signature = self.signature(&signed);
        format!("{signed}.{signature}")
    }

    /// Sufficient for a model: no other process knows the key.
    fn signature(&self, signed: &str) -> String {
        let secret = self.secret.as_ref();
        let digest = digest(&SHA256, &[secret, signed.as_bytes(), secret].concat());
        base64::encode_url(digest.as_ref())
    }

    /// The claims of a token that this server signed.
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
    fn a_signed_token_is_valid_unless_it_was_changed() {
        let access = Access::new(1);
        let claims = json!({ "sub": "a", "aud": ["x"] });
        let token = access.issue(&claims);
        assert_eq!(access.claims(&token), Some(claims));
        assert_eq!(access.claims(&token.replace('.', ".A")), None);
        assert_eq!(Access::new(2).claims(&token), None);
        assert_eq!(access.claims("a.b"), None);
    }

    #[test]
    fn the_first_rule_that_matches_is_applied() {
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
