//! May a pod use an image that is present? `imagePullCredentialsVerificationPolicy`.
//!
//! Source of the rules: `pkg/kubelet/images/pullmanager` of Kubernetes 1.36. The records have the
//! form that the kubelet writes, so that either one continues with what the other one left.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Known secrets of one image beyond which none is added without a pull; upstream's.
const MOST_LEARNED: usize = 100;

/// A pull secret, and what it held.
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

/// A service account whose credentials a provider took.
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

/// With what an image was pulled.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PullCredentials {
    /// Secrets of pods.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kubernetes_secrets: Vec<PullSecret>,
    /// Service accounts of pods.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kubernetes_service_accounts: Vec<PullServiceAccount>,
    /// Nothing, or what all pods of the node may use.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub node_pods_accessible: bool,
}

/// An image that was pulled, and who may use it: upstream's `ImagePulledRecord`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PulledRecord {
    /// When it was changed last, in whole seconds.
    pub last_updated_time: Timestamp,
    /// The runtime's identifier of the image.
    pub image_ref: String,
    /// By the name that it was pulled by, without tag and digest.
    #[serde(default)]
    pub credential_mapping: BTreeMap<String, PullCredentials>,
}

/// Which present images a pod has to prove its access to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VerificationPolicy {
    /// `NeverVerify`: none.
    Never,
    /// `NeverVerifyPreloadedImages`: those that this node pulled.
    NeverPreloaded,
    /// `NeverVerifyAllowlistedImages`: all but these.
    NeverAllowlisted(Vec<String>),
    /// `AlwaysVerify`: all.
    Always,
}

impl VerificationPolicy {
    /// From `imagePullCredentialsVerificationPolicy` and `preloadedImagesVerificationAllowlist`.
    /// `None` for a policy that there is not.
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

/// Whether a pod may use a present image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access<'a> {
    /// Whatever it shows.
    Granted,
    /// It has to pull.
    Denied,
    /// If it shows one of these.
    With(&'a PullCredentials),
}

/// Decides what a pod needs to use a present image. `repository` is the image's name with host and
/// without tag and digest. `pulling`: a pull of the image was begun on this node and its outcome is
/// not recorded.
#[must_use]
pub fn access<'a>(
    policy: &VerificationPolicy,
    repository: &str,
    record: Option<&'a PulledRecord>,
    pulling: bool,
) -> Access<'a> {
    if !policy.verifies(repository, record.is_some() || pulling) {
        return Access::Granted;
    }
    match record.and_then(|record| record.credential_mapping.get(repository)) {
        Some(known) if known.node_pods_accessible => Access::Granted,
        Some(known)
            if !known.kubernetes_secrets.is_empty()
                || !known.kubernetes_service_accounts.is_empty() =>
        {
            Access::With(known)
        }
        _ => Access::Denied,
    }
}

/// What a pod's credentials amount to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    /// One is known.
    Known,
    /// One is known by its content or by its name; it must be recorded.
    Learned(PullSecret),
    /// None is known.
    Unknown,
}

/// Compares a pod's credentials with the records.
#[must_use]
pub fn compare(
    known: &PullCredentials,
    secrets: &[PullSecret],
    account: Option<&PullServiceAccount>,
) -> Shown {
    let room = known.kubernetes_secrets.len() < MOST_LEARNED;
    for shown in secrets {
        for old in &known.kubernetes_secrets {
            let same_content =
                !old.credential_hash.is_empty() && old.credential_hash == shown.credential_hash;
            let same_name = is_same_secret(old, shown);
            match (same_content, same_name) {
                (true, false) if room => return Shown::Learned(shown.clone()),
                (true, _) => return Shown::Known,
                // The secret was edited: who may use it has not changed.
                (false, true) if room => return Shown::Learned(shown.clone()),
                (false, _) => {}
            }
        }
    }
    let accounts = &known.kubernetes_service_accounts;
    match account.is_some_and(|account| accounts.contains(account)) {
        true => Shown::Known,
        false => Shown::Unknown,
    }
}

fn is_same_secret(one: &PullSecret, other: &PullSecret) -> bool {
    (&one.uid, &one.namespace, &one.name) == (&other.uid, &other.namespace, &other.name)
}

/// The record after a pull with `credentials`; `None` if it need not be changed. Without
/// credentials it is only noted that this node pulled the image.
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

/// The time as records have it.
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
