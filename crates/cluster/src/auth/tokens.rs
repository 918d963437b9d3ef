//! Whose token it is: TokenReview.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use rubelet_kube::Client;
use rubelet_server::secure::{AuthError, Authenticator, User};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    cache::{Judgements, Question},
    call::{self, Judge},
};

const PATH: &str = "/apis/authentication.k8s.io/v1/tokenreviews";

/// A token that is nobody's may be somebody's soon: it was just made, or the API server has only
/// just learned of it.
const NOBODYS: Duration = Duration::from_secs(10);

/// Asks the API server whose a token is.
pub struct TokenReviews {
    judge: Arc<dyn Judge>,
    pub(super) judgements: Judgements<Option<User>>,
    ttl: Duration,
}

impl TokenReviews {
    /// With `authentication.webhook.cacheTTL`: how long the owner of a token is remembered.
    #[must_use]
    pub fn new(client: &Client, cache_ttl: Duration) -> Self {
        Self::with(call::judge(client), cache_ttl)
    }

    pub(super) fn with(judge: Arc<dyn Judge>, ttl: Duration) -> Self {
        Self {
            judge,
            judgements: Judgements::new(),
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
            let judge = Arc::clone(&self.judge);
            async move {
                let owner = owner(&call::ask(judge, PATH, body).await?)?;
                let ttl = if owner.is_some() {
                    ttl
                } else {
                    ttl.min(NOBODYS)
                };
                Ok((owner, ttl))
            }
        };
        self.judgements.get(Question::new(token), ask).await
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
    user: Owner,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Owner {
    username: String,
    uid: String,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
}

pub(super) fn owner(review: &Value) -> Result<Option<User>, AuthError> {
    let Review { status } = call::read(PATH, review)?;
    let user = status.user;
    // Somebody without a name would be nobody to authorisation.
    Ok(
        (status.authenticated && !user.username.is_empty()).then_some(User {
            name: user.username,
            uid: user.uid,
            groups: user.groups,
            extra: user.extra,
        }),
    )
}
