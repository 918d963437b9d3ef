//! `tokenAttributes` of a credential provider: which service account tokens the plugin receives.
//!
//! Source of the rules: `validateCredentialProviderConfig` in `pkg/credentialprovider/plugin/config.go` of
//! Kubernetes 1.36.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::validation::label_key_problem;

/// The feature gate of this field.
const GATE: &str = "KubeletServiceAccountTokenForCredentialProviders";
/// The only version of the protocol that has a field for the token.
const VERSION: &str = "credentialprovider.kubelet.k8s.io/v1";

/// How a plugin gets credentials for image pulls from the service account of the pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenAttributes {
    /// `serviceAccountTokenAudience`: the audience of the tokens.
    pub audience: String,
    /// `cacheType`: which pods share a response.
    pub cache_type: TokenCacheType,
    /// `requireServiceAccount`: the plugin is not run for a pod without a service account.
    pub require_service_account: bool,
    /// `requiredServiceAccountAnnotationKeys`: annotations of the service account that the plugin receives,
    /// and without which it is not run.
    pub required_annotations: Vec<String>,
    /// `optionalServiceAccountAnnotationKeys`: annotations that the plugin receives if they are
    /// set.
    pub optional_annotations: Vec<String>,
}

/// `cacheType`: which pods share a cached response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenCacheType {
    /// `Token`: pods with the same token, so a single pod.
    Token,
    /// `ServiceAccount`: all pods of the service account.
    ServiceAccount,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TokenAttributesFields {
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

/// A field of the provider, and the problem with it.
type Problem = (&'static str, String);

const FIELD: &str = "tokenAttributes";
const REQUIRED: &str = "tokenAttributes.requiredServiceAccountAnnotationKeys";
const OPTIONAL: &str = "tokenAttributes.optionalServiceAccountAnnotationKeys";

/// Validates the fields; `is_enabled` is the feature gate.
pub(super) fn validate(
    fields: TokenAttributesFields,
    api_version: &str,
    is_enabled: bool,
) -> Result<TokenAttributes, Problem> {
    let problem = |field, text: String| Err((field, text));
    if !is_enabled {
        return problem(
            FIELD,
            format!("cannot be used while the feature gate {GATE} is off"),
        );
    }
    if api_version != VERSION {
        return problem(
            FIELD,
            format!("needs apiVersion: {VERSION}, is {api_version}"),
        );
    }
    let audience = fields.service_account_token_audience;
    if audience.is_empty() {
        return problem(
            "tokenAttributes.serviceAccountTokenAudience",
            "must be the audience of the tokens".to_owned(),
        );
    }
    let cache_type = match &*fields.cache_type {
        "Token" => TokenCacheType::Token,
        "ServiceAccount" => TokenCacheType::ServiceAccount,
        other => {
            let text = format!("must be ServiceAccount or Token, is {other:?}");
            return problem("tokenAttributes.cacheType", text);
        }
    };
    let Some(require_service_account) = fields.require_service_account else {
        return problem(
            "tokenAttributes.requireServiceAccount",
            "must be true or false".to_owned(),
        );
    };
    let required_annotations = keys(REQUIRED, fields.required_service_account_annotation_keys)?;
    let optional_annotations = keys(OPTIONAL, fields.optional_service_account_annotation_keys)?;
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
        return problem(FIELD, text);
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
        // Annotations are case-sensitive, but a prefix is valid in any case.
        if let Some(why) = label_key_problem(&key.to_lowercase()) {
            return Err((field, format!("{key:?} cannot be an annotation: {why}")));
        }
        if !seen.insert(key) {
            return Err((field, format!("{key:?} is listed twice")));
        }
    }
    Ok(keys)
}
