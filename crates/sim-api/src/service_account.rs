//! Claims of service account tokens, and their validation. Source of rules and texts: upstream's
//! `pkg/serviceaccount/claims.go`.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::{access::AUDIENCE, meta, store::Store, user::User};

/// Leeway for clock skew: a token is valid this much longer than its expiry, and than the deletion of its
/// bound object.
const LEEWAY: SignedDuration = SignedDuration::from_secs(60);

const GONE: &str = "service account token has been invalidated";

/// Parameters of a new token.
pub(crate) struct TokenSpec<'a> {
    pub(crate) account: &'a Value,
    pub(crate) audiences: &'a [String],
    /// Pod, secret or node to which it is bound.
    pub(crate) bound: Option<&'a Value>,
    /// The node of that pod, if known.
    pub(crate) node: Option<Value>,
    pub(crate) now: Timestamp,
    /// Lifetime in seconds.
    pub(crate) seconds: i64,
    /// Seconds after which its use is reported, if its lifetime was extended.
    pub(crate) warn_after: Option<i64>,
    /// Its unique identifier.
    pub(crate) id: String,
}

impl TokenSpec<'_> {
    /// The claims of the token.
    pub(crate) fn claims(&self) -> Value {
        let (namespace, name) = (meta::namespace(self.account), meta::name(self.account));
        let mut kubernetes =
            json!({ "namespace": namespace, "serviceaccount": reference(self.account) });
        if let Some(object) = self.bound {
            let key = meta::text(object, "/kind").to_lowercase();
            kubernetes[key] = reference(object);
        }
        if let Some(node) = &self.node {
            kubernetes["node"] = reference(node);
        }
        let now = self.now.as_second();
        if let Some(seconds) = self.warn_after {
            kubernetes["warnafter"] = now.saturating_add(seconds).into();
        }
        json!({
            "iss": AUDIENCE,
            "sub": format!("system:serviceaccount:{namespace}:{name}"),
            "aud": self.audiences,
            "iat": now,
            "nbf": now,
            "exp": now.saturating_add(self.seconds),
            "jti": self.id,
            "kubernetes.io": kubernetes,
        })
    }
}

/// Name and UID; an unknown UID is omitted.
fn reference(object: &Value) -> Value {
    let mut reference = json!({ "name": meta::name(object) });
    if !meta::uid(object).is_empty() {
        reference["uid"] = meta::uid(object).into();
    }
    reference
}

/// The audiences of a token.
pub(crate) fn audiences(claims: &Value) -> Vec<String> {
    let audiences = meta::entries(claims, "/aud").iter();
    audiences
        .filter_map(|one| one.as_str().map(str::to_owned))
        .collect()
}

/// The user of a token, if it is valid now: it has not expired, and its account and its bound object still
/// exist with the same UIDs.
pub(crate) fn validate(claims: &Value, store: &Store, now: Timestamp) -> Result<User, String> {
    let seconds = |key: &str| claims[key].as_i64().unwrap_or(0);
    if (now - LEEWAY).as_second() > seconds("exp") {
        return Err("service account token has expired".to_owned());
    }
    if (now + LEEWAY).as_second() < seconds("nbf") {
        return Err("service account token is not valid yet".to_owned());
    }
    let about = &claims["kubernetes.io"];
    let namespace = meta::text(about, "/namespace");
    let name = meta::text(about, "/serviceaccount/name");
    let account = store.get("serviceaccounts", namespace, name);
    let account = account.ok_or_else(|| format!("serviceaccounts {name:?} not found"))?;
    let uid = meta::text(about, "/serviceaccount/uid");
    if uid != meta::uid(account) {
        let found = meta::uid(account);
        return Err(format!(
            "service account UID ({found}) does not match claim ({uid})"
        ));
    }
    if is_gone(account, now) {
        return Err(format!(
            "service account {namespace}/{name} has been deleted"
        ));
    }
    // The node of a token that is bound to a pod is only informational.
    let is_pod_bound = about.get("pod").is_some();
    for (key, plural, namespace) in [
        ("secret", "secrets", namespace),
        ("pod", "pods", namespace),
        ("node", "nodes", ""),
    ] {
        let Some(claim) = about.get(key).filter(|_| key != "node" || !is_pod_bound) else {
            continue;
        };
        let found = store.get(plural, namespace, meta::text(claim, "/name"));
        let found = found.ok_or(GONE)?;
        let (uid, claimed) = (meta::uid(found), meta::text(claim, "/uid"));
        if uid != claimed {
            return Err(format!(
                "{key} UID ({uid}) does not match service account {key} ref claim ({claimed})"
            ));
        }
        if is_gone(found, now) {
            return Err(GONE.to_owned());
        }
    }
    Ok(user(claims))
}

/// Whether its deletion was due longer ago than the leeway.
fn is_gone(object: &Value, now: Timestamp) -> bool {
    let deleted = meta::text(object, "/metadata/deletionTimestamp").parse::<Timestamp>();
    deleted.is_ok_and(|deleted| deleted < now - LEEWAY)
}

fn user(claims: &Value) -> User {
    let about = &claims["kubernetes.io"];
    let namespace = meta::text(about, "/namespace");
    let groups = [
        "system:serviceaccounts",
        &format!("system:serviceaccounts:{namespace}"),
    ];
    let mut user = User::new(meta::text(claims, "/sub"), &groups);
    user.uid = meta::text(about, "/serviceaccount/uid").to_owned();
    let id = meta::text(claims, "/jti");
    for (key, value) in [
        ("pod-name", meta::text(about, "/pod/name").to_owned()),
        ("pod-uid", meta::text(about, "/pod/uid").to_owned()),
        ("node-name", meta::text(about, "/node/name").to_owned()),
        ("node-uid", meta::text(about, "/node/uid").to_owned()),
        ("credential-id", format!("JTI={id}")),
    ] {
        if !value.is_empty() {
            let key = format!("authentication.kubernetes.io/{key}");
            user.extra.insert(key, vec![value]);
        }
    }
    user.authenticated()
}
