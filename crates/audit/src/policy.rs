//! Audit policy: the rules that select the requests to record; the first that matches applies.
//!
//! Source of the rules: Kubernetes, `k8s.io/apiserver/pkg/audit/policy` and
//! `k8s.io/apiserver/pkg/apis/audit/validation`.

use std::fmt;

use rubelet_http_core::user::User;
use rubelet_yaml::{DecodeError, Document};
use serde::Deserialize;
use serde_json::Value;

use super::attributes::{RequestAttributes, ResourceRef};

/// The detail in which a request is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditLevel {
    /// Nothing.
    None,
    /// User, verb, object and status code; never a body.
    Metadata,
}

/// An audit policy.
#[derive(Debug, Clone, Default)]
pub struct AuditPolicy {
    omit_stages: Vec<String>,
    rules: Vec<Rule>,
}

/// Why a policy is rejected. Displays as `FILE:LINE:COLUMN: FIELD: what is wrong`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditPolicyError {
    file: String,
    error: Box<DecodeError>,
}

impl fmt::Display for AuditPolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(position) = self.error.position {
            write!(f, ":{}:{}", position.line, position.column)?;
        }
        if let Some(field) = &self.error.field {
            write!(f, ": {field}")?;
        }
        write!(f, ": {}", self.error.message)
    }
}

impl std::error::Error for AuditPolicyError {}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PolicyFile {
    #[serde(rename = "apiVersion")]
    _api_version: String,
    #[serde(rename = "kind")]
    _kind: String,
    #[serde(rename = "metadata")]
    _metadata: Value,
    rules: Vec<Rule>,
    omit_stages: Vec<String>,
    /// Bodies are never recorded.
    #[serde(rename = "omitManagedFields")]
    _omit_managed_fields: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Rule {
    level: String,
    users: Vec<String>,
    #[serde(rename = "userGroups")]
    user_groups: Vec<String>,
    verbs: Vec<String>,
    resources: Vec<GroupResources>,
    namespaces: Vec<String>,
    #[serde(rename = "nonResourceURLs")]
    non_resource_urls: Vec<String>,
    #[serde(rename = "omitStages")]
    omit_stages: Vec<String>,
    #[serde(rename = "omitManagedFields")]
    _omit_managed_fields: Option<bool>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct GroupResources {
    group: String,
    resources: Vec<String>,
    #[serde(rename = "resourceNames")]
    resource_names: Vec<String>,
}

const API_VERSION: &str = "audit.k8s.io/v1";
const KIND: &str = "Policy";
const METADATA: &str = "Metadata";
const STAGES: [&str; 4] = [
    "RequestReceived",
    "ResponseStarted",
    "ResponseComplete",
    "Panic",
];

impl AuditPolicy {
    /// A policy with one level for all requests.
    #[must_use]
    pub fn of_level(level: AuditLevel) -> Self {
        let rule = Rule {
            level: METADATA.to_owned(),
            ..Rule::default()
        };
        Self {
            omit_stages: Vec::new(),
            rules: match level {
                AuditLevel::None => Vec::new(),
                AuditLevel::Metadata => vec![rule],
            },
        }
    }

    /// Reads a Policy of `audit.k8s.io/v1`; `file` is named in errors.
    ///
    /// # Errors
    /// The text is not such a policy, has an unknown field, or requests a level that records
    /// bodies.
    pub fn read(file: &str, text: &str) -> Result<Self, AuditPolicyError> {
        let fail = |error: DecodeError| AuditPolicyError {
            file: file.to_owned(),
            error: Box::new(error),
        };
        let documents = rubelet_yaml::documents(text).map_err(fail)?;
        let [document] = documents.as_slice() else {
            let message = format!(
                "must hold one document with kind: {KIND}, holds {}",
                documents.len()
            );
            return Err(fail(DecodeError {
                document: 0,
                position: None,
                field: None,
                message,
                snippet: None,
            }));
        };
        for (field, wanted) in [("apiVersion", API_VERSION), ("kind", KIND)] {
            let found = document.value().get(field).and_then(Value::as_str);
            if found != Some(wanted) {
                let message = format!("must be {wanted:?}");
                return Err(fail(document.error_at(field, message)));
            }
        }
        let policy: PolicyFile = document.decode_strict().map_err(|error| fail(*error))?;
        check(document, &policy).map_err(fail)?;
        Ok(Self {
            omit_stages: policy.omit_stages,
            rules: policy.rules,
        })
    }

    /// The level of a request, and the stages that are omitted.
    pub(crate) fn decide(
        &self,
        user: Option<&User>,
        request: &RequestAttributes,
    ) -> (AuditLevel, OmittedStages) {
        let rule = self.rules.iter().find(|rule| rule.matches(user, request));
        let Some(rule) = rule else {
            return (AuditLevel::None, OmittedStages::default());
        };
        let level = match rule.level.as_str() {
            METADATA => AuditLevel::Metadata,
            _ => AuditLevel::None,
        };
        let omits = |stage: &str| {
            let mut stages = self.omit_stages.iter().chain(&rule.omit_stages);
            stages.any(|omitted| omitted == stage)
        };
        let omitted = OmittedStages {
            response_started: omits("ResponseStarted"),
            response_complete: omits("ResponseComplete"),
        };
        (level, omitted)
    }
}

/// The stages that are not recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct OmittedStages {
    pub(crate) response_started: bool,
    pub(crate) response_complete: bool,
}

fn check(document: &Document, policy: &PolicyFile) -> Result<(), DecodeError> {
    let stages = |path: &str, stages: &[String]| {
        for (index, stage) in stages.iter().enumerate() {
            if !STAGES.contains(&stage.as_str()) {
                let message = format!("must be one of {}, is {stage:?}", STAGES.join(", "));
                return Err(document.error_at(&format!("{path}[{index}]"), message));
            }
        }
        Ok(())
    };
    stages("omitStages", &policy.omit_stages)?;
    for (index, rule) in policy.rules.iter().enumerate() {
        let at = |field: &str| format!("rules[{index}].{field}");
        let fail = |field: &str, message: String| Err(document.error_at(&at(field), message));
        match rule.level.as_str() {
            "None" | METADATA => {}
            "" => return fail("level", "is missing; write None or Metadata".to_owned()),
            "Request" | "RequestResponse" => {
                let message = format!(
                    "must be None or Metadata, is {:?}: bodies are never recorded",
                    rule.level
                );
                return fail("level", message);
            }
            other => return fail("level", format!("must be None or Metadata, is {other:?}")),
        }
        stages(&at("omitStages"), &rule.omit_stages)?;
        let is_of_resources = !rule.resources.is_empty() || !rule.namespaces.is_empty();
        if is_of_resources && !rule.non_resource_urls.is_empty() {
            let message = "a rule cannot be about both resources and other paths; write two rules";
            return fail("nonResourceURLs", message.to_owned());
        }
        for (number, url) in rule.non_resource_urls.iter().enumerate() {
            let star_inside = url.trim_end_matches('*').contains('*') || url.ends_with("**");
            if url != "*" && (!url.starts_with('/') || star_inside) {
                let message = format!("must begin with / and have * at its end only, is {url:?}");
                return fail(&format!("nonResourceURLs[{number}]"), message);
            }
        }
        for (number, of) in rule.resources.iter().enumerate() {
            let is_group =
                |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
            if !of.group.chars().all(is_group) {
                let message = format!("must be an API group without a version, is {:?}", of.group);
                return fail(&format!("resources[{number}].group"), message);
            }
            if !of.resource_names.is_empty() && of.resources.is_empty() {
                let message = "needs at least one resource beside it".to_owned();
                return fail(&format!("resources[{number}].resourceNames"), message);
            }
        }
    }
    Ok(())
}

impl Rule {
    fn matches(&self, user: Option<&User>, request: &RequestAttributes) -> bool {
        let has = |list: &[String], text: &str| list.iter().any(|one| one == text);
        if !self.users.is_empty() && !user.is_some_and(|user| has(&self.users, &user.name)) {
            return false;
        }
        let in_group = |user: &User| {
            user.groups
                .iter()
                .any(|group| has(&self.user_groups, group))
        };
        if !self.user_groups.is_empty() && !user.is_some_and(in_group) {
            return false;
        }
        if !self.verbs.is_empty() && !has(&self.verbs, &request.verb) {
            return false;
        }
        if !self.namespaces.is_empty() || !self.resources.is_empty() {
            return request.resource.as_ref().is_some_and(|of| {
                let in_namespace =
                    self.namespaces.is_empty() || has(&self.namespaces, &of.namespace);
                let any = self.resources.is_empty();
                in_namespace && (any || self.resources.iter().any(|one| one.matches(of)))
            });
        }
        if !self.non_resource_urls.is_empty() {
            let urls = &self.non_resource_urls;
            return request.resource.is_none()
                && urls.iter().any(|url| is_path(url, &request.path));
        }
        true
    }
}

impl GroupResources {
    fn matches(&self, of: &ResourceRef) -> bool {
        if self.group != of.group {
            return false;
        }
        if self.resources.is_empty() {
            return true;
        }
        let named = self.resource_names.is_empty() || self.resource_names.contains(&of.name);
        named
            && self
                .resources
                .iter()
                .any(|pattern| is_resource(pattern, of))
    }
}

/// `*`, `pods`, `pods/log`, `pods/*` and `*/log`; `pods` alone does not include sub-resources.
fn is_resource(pattern: &str, of: &ResourceRef) -> bool {
    match pattern.split_once('/') {
        None => pattern == "*" || (pattern == of.resource && of.subresource.is_empty()),
        Some(("*", subresource)) => !of.subresource.is_empty() && subresource == of.subresource,
        Some((resource, "*")) => resource == of.resource,
        Some((resource, subresource)) => resource == of.resource && subresource == of.subresource,
    }
}

fn is_path(pattern: &str, path: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => path.starts_with(start),
        None => pattern == path,
    }
}
