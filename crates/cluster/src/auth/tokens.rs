//! Whose token it is: TokenReview.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use rubelet_http_core::user::{AuthError, Authenticator, User};
use rubelet_kube::Client;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    cache::{ReviewCache, ReviewKey},
    call::{self, ReviewApi},
};

const PATH: &str = "/apis/authentication.k8s.io/v1/tokenreviews";

/// TTL of an unknown token: it may become valid soon, when the API server's caches catch up.
const UNKNOWN_TOKEN_TTL: Duration = Duration::from_secs(10);

/// Authenticates tokens at the API server.
pub struct TokenReviews {
    api: Arc<dyn ReviewApi>,
    pub(super) cache: ReviewCache<Option<User>>,
    ttl: Duration,
}

impl TokenReviews {
    /// With `authentication.webhook.cacheTTL`: how long the owner of a token is remembered.
    #[must_use]
    pub fn new(client: &Client, cache_ttl: Duration) -> Self {
        Self::with(call::review_client(client), cache_ttl)
    }

    pub(super) fn with(api: Arc<dyn ReviewApi>, ttl: Duration) -> Self {
        Self {
            api,
            cache: ReviewCache::new(),
            ttl,
        }
    }
}

#[async_trait]
impl Authenticator for TokenReviews {
    async fn token(&self, token: &str) -> Result<Option<User>, AuthError> {
        let ttl = self.ttl;
        let ask = || {
            let body = json!({
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenReview",
                "spec": { "token": token },
            });
            let api = Arc::clone(&self.api);
            async move {
                let owner = owner(&call::ask(api, PATH, body).await?)?;
                let ttl = if owner.is_some() {
                    ttl
                } else {
                    ttl.min(UNKNOWN_TOKEN_TTL)
                };
                Ok((owner, ttl))
            }
        };
        self.cache.get(ReviewKey::new(token), ask).await
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Review {
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    authenticated: bool,
    user: ReviewedUser,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ReviewedUser {
    username: String,
    uid: String,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
}

pub(super) fn owner(review: &Value) -> Result<Option<User>, AuthError> {
    let Review { status } = call::read(PATH, review)?;
    let user = status.user;
    // The authorizer could not attribute a user without a name.
    Ok(
        (status.authenticated && !user.username.is_empty()).then_some(User {
            name: user.username,
            uid: user.uid,
            groups: user.groups,
            extra: user.extra,
        }),
    )
}
