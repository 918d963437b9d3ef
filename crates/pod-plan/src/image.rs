//! Image pull policies, and the reasons and messages of failed pulls.

use jiff::Timestamp;
use rubelet_api::container::PullPolicy;

use crate::{after, step_failure::StepFailure};
use std::time::Duration;

/// The pull failed.
pub const ERR_IMAGE_PULL: &str = "ErrImagePull";
/// The pull failed and is in back-off.
pub(crate) const IMAGE_PULL_BACK_OFF: &str = "ImagePullBackOff";
/// The image is not present and must not be pulled.
pub const ERR_IMAGE_NEVER_PULL: &str = "ErrImageNeverPull";
/// The reference can't be parsed.
pub const INVALID_IMAGE_NAME: &str = "InvalidImageName";
/// The runtime could not report whether the image is present.
pub const IMAGE_INSPECT_ERROR: &str = "ImageInspectError";
/// The registry could not be reached.
const REGISTRY_UNAVAILABLE: &str = "RegistryUnavailable";
/// The image's signature is not valid.
const SIGNATURE_VALIDATION_FAILED: &str = "SignatureValidationFailed";

/// How the image of a container is provided before its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullDecision {
    /// Use the present image.
    UsePresent,
    /// Pull it.
    Pull,
    /// The image is not present and the policy forbids a pull.
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

/// The reason and the message of a failed pull whose cause the runtime names: `said` begins with it, as CRI-O's does
/// (kubelet: `evalCRIPullErr`). `None` if it names none.
#[must_use]
pub fn named_pull_failure(image: &str, said: &str) -> Option<(&'static str, String)> {
    let causes = [
        (REGISTRY_UNAVAILABLE, "the registry is unavailable"),
        (
            SIGNATURE_VALIDATION_FAILED,
            "the signature validation failed",
        ),
    ];
    causes.into_iter().find_map(|(reason, cause)| {
        let details = said.strip_prefix(reason)?;
        let message = format!("image pull failed for {image} because {cause}{details}");
        Some((reason, message))
    })
}

/// True for reasons with the back-off of image pulls.
#[must_use]
pub(crate) fn is_pull_failure(reason: &str) -> bool {
    matches!(
        reason,
        ERR_IMAGE_PULL | REGISTRY_UNAVAILABLE | SIGNATURE_VALIDATION_FAILED
    )
}

/// True for all reasons that concern the image. An event of its own has reported the failure.
#[must_use]
pub fn is_image_failure(reason: &str) -> bool {
    is_pull_failure(reason)
        || matches!(
            reason,
            ERR_IMAGE_NEVER_PULL | INVALID_IMAGE_NAME | IMAGE_INSPECT_ERROR
        )
}

/// The time from which a failed pull is shown as `ImagePullBackOff`. Before that the cause is
/// shown, so that an operator can read it.
#[must_use]
pub(crate) fn backoff_shown_from(failure: &StepFailure) -> Option<Timestamp> {
    is_pull_failure(&failure.reason)
        .then(|| after(failure.at, (failure.delay / 2).min(Duration::from_secs(5))))
}

/// The waiting reason and message of a failed start, as the kubelet words them.
#[must_use]
pub fn shown(failure: &StepFailure, image: &str, now: Timestamp) -> (Box<str>, Box<str>) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_may_name_the_cause_of_a_failed_pull() {
        let named = |said| named_pull_failure("example.com/app:1", said);
        let cases = [
            (
                "RegistryUnavailable: connection refused",
                "RegistryUnavailable",
                "image pull failed for example.com/app:1 because the registry is unavailable: connection refused",
            ),
            (
                "SignatureValidationFailed",
                "SignatureValidationFailed",
                "image pull failed for example.com/app:1 because the signature validation failed",
            ),
        ];
        for (said, reason, message) in cases {
            assert_eq!(named(said), Some((reason, message.to_owned())));
        }
        assert_eq!(named("no such image: RegistryUnavailable"), None);
    }
}
