//! Who a token is, and who may do what: the tables that tests and the command line fill.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::{base64, user::User};

/// The audience of tokens that are for the server itself.
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
    secret: [u8; 32],
}

impl Access {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            tokens: BTreeMap::new(),
            rules: Vec::new(),
            secret: Sha256::digest(seed.to_le_bytes()).into(),
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

    /// The user and audiences of a token, if it is good now.
    pub(crate) fn user_of(&self, token: &str, now: Timestamp) -> Option<(User, Vec<String>)> {
        if let Some(user) = self.tokens.get(token) {
            return Some((user.clone(), vec![AUDIENCE.to_owned()]));
        }
        let claims = self.claims(token)?;
        if claims["exp"].as_i64()? <= now.as_second() {
            return None;
        }
        let audiences = crate::meta::entries(&claims, "/aud").iter();
        let audiences = audiences.filter_map(|one| one.as_str().map(str::to_owned));
        Some((service_account(&claims), audiences.collect()))
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
        let digest = Sha256::new()
            .chain_update(self.secret)
            .chain_update(signed)
            .chain_update(self.secret)
            .finalize();
        base64::encode_url(&digest)
    }

    fn claims(&self, token: &str) -> Option<Value> {
        let (signed, signature) = token.rsplit_once('.')?;
        if self.signature(signed) != signature {
            return None;
        }
        let (_, body) = signed.split_once('.')?;
        serde_json::from_slice(&base64::decode(body)?).ok()
    }
}

/// What a token of a service account says; `bound` is the object it lives with, if any.
pub(crate) fn claims(
    account: &Value,
    audiences: &[String],
    bound: Option<&Value>,
    now: Timestamp,
    lifetime: Duration,
) -> Value {
    let (namespace, name) = (crate::meta::namespace(account), crate::meta::name(account));
    let reference = |object: &Value| json!({ "name": crate::meta::name(object), "uid": crate::meta::uid(object) });
    let mut kubernetes = json!({ "namespace": namespace, "serviceaccount": reference(account) });
    if let Some(object) = bound {
        let key = match crate::meta::text(object, "/kind") {
            "Secret" => "secret",
            "Node" => "node",
            _ => "pod",
        };
        kubernetes[key] = reference(object);
    }
    let lifetime = i64::try_from(lifetime.as_secs()).unwrap_or(i64::MAX);
    json!({
        "iss": AUDIENCE,
        "sub": format!("system:serviceaccount:{namespace}:{name}"),
        "aud": audiences,
        "iat": now.as_second(),
        "nbf": now.as_second(),
        "exp": now.as_second().saturating_add(lifetime),
        "kubernetes.io": kubernetes,
    })
}

fn service_account(claims: &Value) -> User {
    let about = &claims["kubernetes.io"];
    let namespace = crate::meta::text(about, "/namespace");
    let mut user = User::new(
        crate::meta::text(claims, "/sub"),
        &[
            "system:serviceaccounts",
            &format!("system:serviceaccounts:{namespace}"),
        ],
    );
    user.uid = crate::meta::text(about, "/serviceaccount/uid").to_owned();
    for (key, place) in [("pod-name", "/pod/name"), ("pod-uid", "/pod/uid")] {
        let value = crate::meta::text(about, place);
        if !value.is_empty() {
            let key = format!("authentication.kubernetes.io/{key}");
            user.extra.insert(key, vec![value.to_owned()]);
        }
    }
    user.authenticated()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_service_accounts_are_good_until_they_run_out_or_are_changed() {
        let access = Access::new(1);
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let account = json!({ "metadata": { "namespace": "a", "name": "web", "uid": "u" } });
        let pod = json!({ "kind": "Pod", "metadata": { "name": "p", "uid": "v" } });
        let hour = Duration::from_secs(3600);
        let claims = claims(&account, &["x".to_owned()], Some(&pod), now, hour);
        let token = access.issue(&claims);
        let (user, audiences) = access.user_of(&token, now).unwrap();
        assert_eq!(user.name, "system:serviceaccount:a:web");
        assert_eq!(audiences, ["x"]);
        assert_eq!(user.extra["authentication.kubernetes.io/pod-uid"], ["v"]);
        assert!(access.user_of(&token, now + hour).is_none());
        assert!(access.user_of(&token.replace('.', ".A"), now).is_none());
        assert!(Access::new(2).user_of(&token, now).is_none());
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
