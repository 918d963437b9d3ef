//! Image pulls, credential verification and image garbage collection.

use super::{Check, CheckResult, at_least, one_of, range, violation};
use rubelet_base::duration::format_go;

const POLICIES: [&str; 4] = [
    "NeverVerify",
    "NeverVerifyPreloadedImages",
    "NeverVerifyAllowlistedImages",
    "AlwaysVerify",
];

pub(super) fn validate(check: &Check<'_>) -> CheckResult {
    let config = check.config;
    at_least("registryPullQPS", config.registry_pull_qps, 0)?;
    at_least("registryBurst", config.registry_burst, 0)?;
    if let Some(count) = config.max_parallel_image_pulls {
        at_least("maxParallelImagePulls", count, 1)?;
        if config.serialize_image_pulls && count > 1 {
            let message = format!(
                "maxParallelImagePulls must be 1 while serializeImagePulls is true, is {count}"
            );
            return violation(["maxParallelImagePulls", "serializeImagePulls"], message);
        }
    }
    garbage_collection(check)?;
    credentials(check)
}

fn garbage_collection(check: &Check<'_>) -> CheckResult {
    let config = check.config;
    let (high, low) = (
        config.image_gc_high_threshold_percent,
        config.image_gc_low_threshold_percent,
    );
    range("imageGCHighThresholdPercent", high, 0, 100)?;
    range("imageGCLowThresholdPercent", low, 0, 100)?;
    if low >= high {
        let message = format!(
            "imageGCLowThresholdPercent must be less than imageGCHighThresholdPercent; \
             they are {low} and {high}"
        );
        let fields = ["imageGCLowThresholdPercent", "imageGCHighThresholdPercent"];
        return violation(fields, message);
    }
    let (least, most) = (config.image_minimum_gc_age, config.image_maximum_gc_age);
    if !most.is_zero() && most <= least {
        let message = format!(
            "imageMaximumGCAge must be 0s or more than imageMinimumGCAge; they are {} and {}",
            format_go(most),
            format_go(least)
        );
        return violation(["imageMaximumGCAge", "imageMinimumGCAge"], message);
    }
    Ok(())
}

fn credentials(check: &Check<'_>) -> CheckResult {
    let config = check.config;
    let policy = "imagePullCredentialsVerificationPolicy";
    let list = "preloadedImagesVerificationAllowlist";
    if !check.gates.enabled("KubeletEnsureSecretPulledImages") {
        for field in [policy, list] {
            if (check.given)(field) {
                let message = "needs the feature gate KubeletEnsureSecretPulledImages".to_owned();
                return violation([field], message);
            }
        }
        return Ok(());
    }
    one_of(
        policy,
        &config.image_pull_credentials_verification_policy,
        &POLICIES,
    )?;
    let patterns = &config.preloaded_images_verification_allowlist;
    let allowlisted =
        config.image_pull_credentials_verification_policy == "NeverVerifyAllowlistedImages";
    if !patterns.is_empty() && !allowlisted {
        let message = format!("needs {policy} to be \"NeverVerifyAllowlistedImages\"");
        return violation([list, policy], message);
    }
    for (index, pattern) in patterns.iter().enumerate() {
        if !is_image_pattern(pattern) {
            let field = format!("{list}[{index}]");
            let message = format!(
                "must be an image with its registry and without tag and digest, or a prefix that ends in /*, is {pattern:?}"
            );
            return violation([field.as_str()], message);
        }
    }
    Ok(())
}

fn is_image_pattern(pattern: &str) -> bool {
    let name = pattern.strip_suffix("/*").unwrap_or(pattern);
    let last = name.rsplit('/').next().unwrap_or_default();
    let is_wildcard = name.len() < pattern.len();
    // Images are compared by their full names; a pattern in another form would never match.
    let is_full = name.split_once('/').is_some_and(|(host, path)| match host {
        "docker.io" => path.contains('/'),
        "index.docker.io" => false,
        _ => host == "localhost" || host.contains(['.', ':']),
    });
    !name.is_empty()
        && (is_wildcard || is_full)
        && !name.contains(|c: char| c == '*' || c == '@' || c.is_whitespace())
        && (is_wildcard || !last.contains(':'))
}
