//! Whether to pull an image, and how a failed pull is reported.

use jiff::Timestamp;
use rubelet_api::container::PullPolicy;

use crate::{after, history::Failure};
use std::time::Duration;

/// The pull failed.
pub const ERR_IMAGE_PULL: &str = "ErrImagePull";
/// The pull failed and waits before the next try.
pub const IMAGE_PULL_BACK_OFF: &str = "ImagePullBackOff";
/// The image is not there and may not be pulled.
pub const ERR_IMAGE_NEVER_PULL: &str = "ErrImageNeverPull";
/// The reference can't be parsed.
pub const INVALID_IMAGE_NAME: &str = "InvalidImageName";
/// The runtime could not report whether the image is present.
pub const IMAGE_INSPECT_ERROR: &str = "ImageInspectError";
/// The registry could not be reached.
pub const REGISTRY_UNAVAILABLE: &str = "RegistryUnavailable";
/// The image's signature is not valid.
pub const SIGNATURE_VALIDATION_FAILED: &str = "SignatureValidationFailed";

/// What to do about an image before a container starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullDecision {
    /// Use what is there.
    UsePresent,
    /// Pull it.
    Pull,
    /// It is not there and the policy forbids to pull it.
    Refuse,
}

/// Applies `imagePullPolicy`.
#[must_use]
pub fn pull_decision(policy: PullPolicy, present: bool) -> PullDecision {
    match (policy, present) {
        (PullPolicy::Always, _) | (PullPolicy::IfNotPresent, false) => PullDecision::Pull,
        (_, true) => PullDecision::UsePresent,
        (PullPolicy::Never, false) => PullDecision::Refuse,
    }
}

/// True for reasons that back off as pulls do.
#[must_use]
pub fn is_pull_failure(reason: &str) -> bool {
    matches!(
        reason,
        ERR_IMAGE_PULL | REGISTRY_UNAVAILABLE | SIGNATURE_VALIDATION_FAILED
    )
}

/// True for all reasons that are about the image. What is wrong was reported by an event of its own.
#[must_use]
pub fn is_image_failure(reason: &str) -> bool {
    is_pull_failure(reason)
        || matches!(
            reason,
            ERR_IMAGE_NEVER_PULL | INVALID_IMAGE_NAME | IMAGE_INSPECT_ERROR
        )
}

/// From when on a failed pull is shown as `ImagePullBackOff`: the cause is shown for a while first,
/// so that an operator can read it.
#[must_use]
pub fn backoff_shown_from(failure: &Failure) -> Option<Timestamp> {
    is_pull_failure(&failure.reason)
        .then(|| after(failure.at, (failure.delay / 2).min(Duration::from_secs(5))))
}

/// The waiting reason and message for a failed start, as the kubelet words them.
#[must_use]
pub fn shown(failure: &Failure, image: &str, now: Timestamp) -> (Box<str>, Box<str>) {
    match backoff_shown_from(failure) {
        Some(from) if now >= from => (
            IMAGE_PULL_BACK_OFF.into(),
            format!(
                "Back-off pulling image {image:?}: {}: {}",
                failure.reason, failure.message
            )
            .into(),
        ),
        _ => (failure.reason.clone(), failure.message.clone()),
    }
}
