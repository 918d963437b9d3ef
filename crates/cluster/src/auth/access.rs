//! Authorization by SubjectAccessReview.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use rubelet_http_core::user::{Attributes, AuthError, Authorizer, User};
use rubelet_kube::Client;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    cache::{ReviewCache, ReviewKey},
    call::{self, ReviewApi},
};

const PATH: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/// Checks permissions of users at the API server.
pub struct AccessReviews {
    api: Arc<dyn ReviewApi>,
    cache: ReviewCache<bool>,
    allowed_ttl: Duration,
    denied_ttl: Duration,
}

impl AccessReviews {
    /// With `authorization.webhook.cacheAuthorizedTTL` and `cacheUnauthorizedTTL`: the TTLs of
    /// cached decisions.
    #[must_use]
    pub fn new(client: &Client, authorized_ttl: Duration, unauthorized_ttl: Duration) -> Self {
        Self::with(
            call::review_client(client),
            authorized_ttl,
            unauthorized_ttl,
        )
    }

    pub(super) fn with(
        api: Arc<dyn ReviewApi>,
        allowed_ttl: Duration,
        denied_ttl: Duration,
    ) -> Self {
        Self {
            api,
            cache: ReviewCache::new(),
            allowed_ttl,
            denied_ttl,
        }
    }
}

#[async_trait]
impl Authorizer for AccessReviews {
    async fn authorize(&self, user: &User, attributes: &Attributes) -> Result<bool, AuthError> {
        let spec = spec(user, attributes);
        let question = ReviewKey::new(&spec.to_string());
        let (allowed_ttl, denied_ttl) = (self.allowed_ttl, self.denied_ttl);
        let ask = || {
            let body = json!({
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SubjectAccessReview",
                "spec": spec,
            });
            let api = Arc::clone(&self.api);
            async move {
                let allowed = allowed(&call::ask(api, PATH, body).await?)?;
                Ok((allowed, if allowed { allowed_ttl } else { denied_ttl }))
            }
        };
        self.cache.get(question, ask).await
    }
}

fn spec(user: &User, attributes: &Attributes) -> Value {
    let mut spec = json!({
        "resourceAttributes": {
            "verb": attributes.verb,
            "version": "v1",
            "resource": "nodes",
            "subresource": attributes.subresource,
            "name": *attributes.node,
        },
        "user": user.name,
        "groups": user.groups,
    });
    if !user.uid.is_empty() {
        spec["uid"] = user.uid.as_str().into();
    }
    if !user.extra.is_empty() {
        spec["extra"] = json!(user.extra);
    }
    spec
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Review {
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    allowed: bool,
    denied: bool,
}

pub(super) fn allowed(review: &Value) -> Result<bool, AuthError> {
    let Review { status } = call::read(PATH, review)?;
    match status {
        Status {
            allowed: true,
            denied: true,
        } => Err(AuthError(format!(
            "{PATH}: the answer allows and denies at once"
        ))),
        Status { allowed, .. } => Ok(allowed),
    }
}
