//! Access of pods to images that are present: `imagePullCredentialsVerificationPolicy`.
//!
//! Source of the rules: `pkg/kubelet/images/pullmanager` of Kubernetes 1.36. The records have the
//! kubelet's format, so that either agent can use the records of the other.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Number of known secrets of one image from which on none is added without a pull; upstream's.
const MAX_SECRETS_WITHOUT_PULL: usize = 100;

/// A pull secret and the hash of its credentials.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PullSecret {
    /// UID of the secret.
    pub uid: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// SHA-256 of the login that was used, in hexadecimal.
    pub credential_hash: String,
}

/// A service account whose token a credential provider used.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct PullServiceAccount {
    /// UID of the service account.
    pub uid: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// The credentials with which an image was pulled.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PullCredentials {
    /// Secrets of pods.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kubernetes_secrets: Vec<PullSecret>,
    /// Service accounts of pods.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kubernetes_service_accounts: Vec<PullServiceAccount>,
    /// True if it was pulled without credentials, or with credentials that all pods of the node may
    /// use.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub node_pods_accessible: bool,
}

/// A pulled image and the credentials that grant access to it: upstream's `ImagePulledRecord`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PulledRecord {
    /// When it was last changed, in whole seconds.
    pub last_updated_time: Timestamp,
    /// The runtime's identifier of the image.
    pub image_ref: String,
    /// By the name with which the image was pulled, without tag and digest.
    #[serde(default)]
    pub credential_mapping: BTreeMap<String, PullCredentials>,
}

/// The present images for which a pod must show credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VerificationPolicy {
    /// `NeverVerify`: none.
    Never,
    /// `NeverVerifyPreloadedImages`: those pulled by this node.
    NeverPreloaded,
    /// `NeverVerifyAllowlistedImages`: all except these.
    NeverAllowlisted(Vec<String>),
    /// `AlwaysVerify`: all.
    Always,
}

impl VerificationPolicy {
    /// From `imagePullCredentialsVerificationPolicy` and `preloadedImagesVerificationAllowlist`.
    /// `None` for an unknown policy.
    #[must_use]
    pub fn parse(policy: &str, allowlist: &[String]) -> Option<Self> {
        Some(match policy {
            "NeverVerify" => Self::Never,
            "NeverVerifyPreloadedImages" => Self::NeverPreloaded,
            "NeverVerifyAllowlistedImages" => Self::NeverAllowlisted(allowlist.to_vec()),
            "AlwaysVerify" => Self::Always,
            _ => return None,
        })
    }

    fn verifies(&self, repository: &str, pulled_here: bool) -> bool {
        match self {
            Self::Never => false,
            Self::NeverPreloaded => pulled_here,
            Self::NeverAllowlisted(patterns) => {
                let fits = |pattern: &String| match pattern.strip_suffix('*') {
                    Some(prefix) => repository.starts_with(prefix),
                    None => repository == pattern,
                };
                !patterns.iter().any(fits)
            }
            Self::Always => true,
        }
    }
}

/// The access of a pod to a present image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageGrant<'a> {
    /// Granted without credentials: the policy does not ask for any.
    ByPolicy,
    /// Granted without credentials: it was pulled with those of the node.
    ByRecord,
    /// Denied: the pod must pull the image.
    Denied,
    /// Granted with one of these credentials.
    With(&'a PullCredentials),
}

/// Decides what a pod needs to use a present image. `repository` is the image's name with host and
/// without tag and digest. `pulling`: a pull of the image was begun on this node, and its outcome
/// is not recorded yet.
#[must_use]
pub fn access<'a>(
    policy: &VerificationPolicy,
    repository: &str,
    record: Option<&'a PulledRecord>,
    pulling: bool,
) -> ImageGrant<'a> {
    if !policy.verifies(repository, record.is_some() || pulling) {
        return ImageGrant::ByPolicy;
    }
    match record.and_then(|record| record.credential_mapping.get(repository)) {
        Some(known) if known.node_pods_accessible => ImageGrant::ByRecord,
        Some(known)
            if !known.kubernetes_secrets.is_empty()
                || !known.kubernetes_service_accounts.is_empty() =>
        {
            ImageGrant::With(known)
        }
        _ => ImageGrant::Denied,
    }
}

/// The result of comparing a pod's credentials with the recorded ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialMatch {
    /// One of the credentials is recorded.
    Known,
    /// One matches a recorded secret by content or by name, and must be recorded itself.
    Learned(PullSecret),
    /// None of the credentials is recorded.
    Unknown,
}

/// Compares a pod's credentials with the records.
#[must_use]
pub fn compare(
    known: &PullCredentials,
    secrets: &[PullSecret],
    account: Option<&PullServiceAccount>,
) -> CredentialMatch {
    let room = known.kubernetes_secrets.len() < MAX_SECRETS_WITHOUT_PULL;
    for shown in secrets {
        for old in &known.kubernetes_secrets {
            let same_content =
                !old.credential_hash.is_empty() && old.credential_hash == shown.credential_hash;
            let same_name = is_same_secret(old, shown);
            match (same_content, same_name) {
                (true, false) if room => return CredentialMatch::Learned(shown.clone()),
                (true, _) => return CredentialMatch::Known,
                // The secret was edited: access to it has not changed.
                (false, true) if room => return CredentialMatch::Learned(shown.clone()),
                (false, _) => {}
            }
        }
    }
    let accounts = &known.kubernetes_service_accounts;
    match account.is_some_and(|account| accounts.contains(account)) {
        true => CredentialMatch::Known,
        false => CredentialMatch::Unknown,
    }
}

fn is_same_secret(one: &PullSecret, other: &PullSecret) -> bool {
    (&one.uid, &one.namespace, &one.name) == (&other.uid, &other.namespace, &other.name)
}

/// The record after a pull with `credentials`; `None` if it does not change. Without credentials it
/// only states that this node pulled the image.
#[must_use]
pub fn recorded(
    old: Option<&PulledRecord>,
    image_ref: &str,
    repository: &str,
    credentials: Option<&PullCredentials>,
    now: Timestamp,
) -> Option<PulledRecord> {
    let last_updated_time = whole_seconds(now);
    let Some(old) = old else {
        let mapping = credentials.map(|one| (repository.to_owned(), one.clone()));
        return Some(PulledRecord {
            last_updated_time,
            image_ref: image_ref.to_owned(),
            credential_mapping: mapping.into_iter().collect(),
        });
    };
    let credentials = credentials.filter(|new| **new != PullCredentials::default())?;
    let known = old.credential_mapping.get(repository);
    let merged = merged(known, credentials);
    if known == Some(&merged) {
        return None;
    }
    let mut record = old.clone();
    record
        .credential_mapping
        .insert(repository.to_owned(), merged);
    record.last_updated_time = last_updated_time;
    Some(record)
}

/// The time in the precision of the records.
#[must_use]
pub fn whole_seconds(now: Timestamp) -> Timestamp {
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

fn merged(known: Option<&PullCredentials>, new: &PullCredentials) -> PullCredentials {
    let Some(known) = known else {
        return new.clone();
    };
    if known.node_pods_accessible || new.node_pods_accessible {
        return PullCredentials {
            node_pods_accessible: true,
            ..PullCredentials::default()
        };
    }
    let mut merged = known.clone();
    for secret in &new.kubernetes_secrets {
        merged
            .kubernetes_secrets
            .retain(|old| !is_same_secret(old, secret));
        merged.kubernetes_secrets.push(secret.clone());
    }
    let order = |one: &PullSecret| (one.namespace.clone(), one.name.clone(), one.uid.clone());
    merged.kubernetes_secrets.sort_by_key(order);
    for account in &new.kubernetes_service_accounts {
        if !merged.kubernetes_service_accounts.contains(account) {
            merged.kubernetes_service_accounts.push(account.clone());
        }
    }
    let order =
        |one: &PullServiceAccount| (one.namespace.clone(), one.name.clone(), one.uid.clone());
    merged.kubernetes_service_accounts.sort_by_key(order);
    merged
}

#[cfg(test)]
mod tests;
