//! `tokenAttributes` of a credential provider: which service account tokens it is given.
//!
//! Source of the rules: `validateCredentialProviderConfig` in `pkg/credentialprovider/plugin/config.go` of
//! Kubernetes 1.36.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::validation::label_key_problem;

/// The gate of this field.
const GATE: &str = "KubeletServiceAccountTokenForCredentialProviders";
/// The only version of the protocol that has a place for a token.
const VERSION: &str = "credentialprovider.kubelet.k8s.io/v1";

/// How a provider takes part in image pulls with the service account of the pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenAttributes {
    /// `serviceAccountTokenAudience`: the audience of the tokens.
    pub audience: String,
    /// `cacheType`: which pods share a response.
    pub cache_type: TokenCacheType,
    /// `requireServiceAccount`: the program is not run for a pod without a service account.
    pub require_service_account: bool,
    /// `requiredServiceAccountAnnotationKeys`: annotations of the service account that the program is given,
    /// and without which it is not run.
    pub required_annotations: Vec<String>,
    /// `optionalServiceAccountAnnotationKeys`: annotations that it is given where they are set.
    pub optional_annotations: Vec<String>,
}

/// `cacheType`: for how many pods one answer of a provider counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenCacheType {
    /// `Token`: for those that show the same token, so for one pod.
    Token,
    /// `ServiceAccount`: for all pods of the service account.
    ServiceAccount,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Written {
    #[serde(default)]
    service_account_token_audience: String,
    #[serde(default)]
    cache_type: String,
    require_service_account: Option<bool>,
    #[serde(default)]
    required_service_account_annotation_keys: Option<Vec<String>>,
    #[serde(default)]
    optional_service_account_annotation_keys: Option<Vec<String>>,
}

/// A field of the provider, and what is wrong with it.
type Problem = (&'static str, String);

const WHOLE: &str = "tokenAttributes";
const REQUIRED: &str = "tokenAttributes.requiredServiceAccountAnnotationKeys";
const OPTIONAL: &str = "tokenAttributes.optionalServiceAccountAnnotationKeys";

/// Checks what is written; `is_enabled` is the feature gate.
pub(super) fn checked(
    written: Written,
    api_version: &str,
    is_enabled: bool,
) -> Result<TokenAttributes, Problem> {
    let problem = |field, text: String| Err((field, text));
    if !is_enabled {
        return problem(
            WHOLE,
            format!("cannot be used while the feature gate {GATE} is off"),
        );
    }
    if api_version != VERSION {
        return problem(
            WHOLE,
            format!("needs apiVersion: {VERSION}, is {api_version}"),
        );
    }
    let audience = written.service_account_token_audience;
    if audience.is_empty() {
        return problem(
            "tokenAttributes.serviceAccountTokenAudience",
            "must be the audience of the tokens".to_owned(),
        );
    }
    let cache_type = match &*written.cache_type {
        "Token" => TokenCacheType::Token,
        "ServiceAccount" => TokenCacheType::ServiceAccount,
        other => {
            let text = format!("must be ServiceAccount or Token, is {other:?}");
            return problem("tokenAttributes.cacheType", text);
        }
    };
    let Some(require_service_account) = written.require_service_account else {
        return problem(
            "tokenAttributes.requireServiceAccount",
            "must be true or false".to_owned(),
        );
    };
    let required_annotations = keys(REQUIRED, written.required_service_account_annotation_keys)?;
    let optional_annotations = keys(OPTIONAL, written.optional_service_account_annotation_keys)?;
    if !require_service_account && !required_annotations.is_empty() {
        return problem(
            REQUIRED,
            "must be empty unless requireServiceAccount is true".to_owned(),
        );
    }
    if let Some(both) = required_annotations
        .iter()
        .find(|key| optional_annotations.contains(key))
    {
        let text = format!(
            "{both:?} is in requiredServiceAccountAnnotationKeys and in optionalServiceAccountAnnotationKeys"
        );
        return problem(WHOLE, text);
    }
    Ok(TokenAttributes {
        audience,
        cache_type,
        require_service_account,
        required_annotations,
        optional_annotations,
    })
}

fn keys(field: &'static str, keys: Option<Vec<String>>) -> Result<Vec<String>, Problem> {
    let keys = keys.unwrap_or_default();
    let mut seen = BTreeSet::new();
    for key in &keys {
        // Annotations are compared with their case, but may have a prefix in any case.
        if let Some(why) = label_key_problem(&key.to_lowercase()) {
            return Err((field, format!("{key:?} cannot be an annotation: {why}")));
        }
        if !seen.insert(key) {
            return Err((field, format!("{key:?} is there twice")));
        }
    }
    Ok(keys)
}
