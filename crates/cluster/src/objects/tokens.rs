//! Service account tokens: asked for, kept, and replaced in time.

use std::time::Duration;

use jiff::Timestamp;
use rubelet_api::{objects::Token, pod::Pod};
use rubelet_base::ErrorChain;
use rubelet_kube::ApiError;
use serde_json::json;
use tokio::time::{Instant, timeout};
use tracing::warn;

use super::{
    draws::{TokenRequest, is_name},
    files::FileKey,
    read::BEFORE_OLD,
    records::{HeldToken, TokensRecord},
    shared::Shared,
    token_rules::{by_own_clock, refresh_at, spread_of},
    wire::TokenAnswer,
};

/// A token that is kept.
pub(super) struct Held {
    pub(super) token: HeldToken,
    /// When it is to be replaced.
    pub(super) refresh_at: Timestamp,
    /// When its replacement was last tried, or the pod was told to.
    pub(super) tried_at: Option<Instant>,
    /// The API server could not be asked for a new one.
    pub(super) unconfirmed: bool,
}

impl Held {
    fn new(pod: &Pod, request: &TokenRequest, token: HeldToken) -> Self {
        let spread = spread_of(&format!("{}{}", pod.uid, request.audience));
        let lifetime = token.seconds.map(Duration::from_secs);
        Self {
            refresh_at: refresh_at(token.expires_at, lifetime, spread),
            token,
            tried_at: None,
            unconfirmed: false,
        }
    }
}

impl Shared {
    /// A token that is valid now; an old one only where the API server can't be asked.
    pub(super) async fn token(&self, pod: &Pod, request: &TokenRequest) -> Result<Token, String> {
        let account = account(pod);
        if !is_name(account) {
            return Err(format!(
                "failed to fetch token: serviceaccounts {account:?} not found"
            ));
        }
        self.load_tokens(pod).await;
        let now = self.clock.now();
        let held = self.held(pod, request);
        if let Some((token, refresh_at)) = &held
            && now < *refresh_at
        {
            return Ok(Token((&*token.token).into()));
        }
        let answer = self.request(pod, request, held.is_some()).await;
        match (answer, held) {
            (Ok(answer), _) => {
                let seconds = answer.spec.expiration_seconds;
                let end = answer.status.expiration_timestamp;
                let token = HeldToken {
                    token: answer.status.token.clone(),
                    expires_at: by_own_clock(end, seconds.map(Duration::from_secs), now),
                    seconds,
                };
                self.keep(pod, request, token);
                Ok(Token(answer.status.token.into()))
            }
            (Err(error), None) => Err(format!("failed to fetch token: {}", ErrorChain(&error))),
            (Err(error), Some((old, _))) => {
                if old.expires_at <= now && !error.is_transient() {
                    return Err(format!(
                        "token {:?}/{:?}/{:?}/{} expired and refresh failed: {}",
                        account,
                        pod.name.namespace,
                        request.audience,
                        request.seconds,
                        ErrorChain(&error)
                    ));
                }
                warn!(pod = %pod.name, audience = %request.audience, expires_at = %old.expires_at, error = %ErrorChain(&error), "A service account token can't be replaced; the old one is used");
                self.note_tried(pod, request);
                Ok(Token((&*old.token).into()))
            }
        }
    }

    async fn request(
        &self,
        pod: &Pod,
        request: &TokenRequest,
        has_old: bool,
    ) -> Result<TokenAnswer, ApiError> {
        let namespace = &pod.name.namespace;
        let path = format!(
            "/api/v1/namespaces/{namespace}/serviceaccounts/{}/token",
            account(pod)
        );
        let audiences: Vec<&str> = [&*request.audience]
            .into_iter()
            .filter(|audience| !audience.is_empty())
            .collect();
        let body = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {
                "audiences": audiences,
                "expirationSeconds": request.seconds,
                "boundObjectRef": {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "name": &*pod.name.name,
                    "uid": pod.uid.as_str(),
                },
            },
        });
        let call = self.api.token(&path, &body);
        if !has_old {
            return call.await;
        }
        timeout(BEFORE_OLD, call)
            .await
            .unwrap_or(Err(ApiError::TimedOut))
    }

    fn held(&self, pod: &Pod, request: &TokenRequest) -> Option<(HeldToken, Timestamp)> {
        let state = self.state();
        let held = state.pods.get(&pod.uid)?.tokens.get(request)?;
        Some((held.token.clone(), held.refresh_at))
    }

    fn keep(&self, pod: &Pod, request: &TokenRequest, token: HeldToken) {
        let mut state = self.state();
        if let Some(tracked) = state.pods.get_mut(&pod.uid) {
            let held = Held {
                // One that is at its end already is not asked for again at once.
                tried_at: Some(Instant::now()),
                ..Held::new(pod, request, token)
            };
            tracked.tokens.insert(request.clone(), held);
        }
        drop(state);
        self.is_dirty(FileKey::Tokens(pod.uid.clone()));
        self.wake.notify_one();
    }

    fn note_tried(&self, pod: &Pod, request: &TokenRequest) {
        let mut state = self.state();
        let tracked = state.pods.get_mut(&pod.uid);
        if let Some(held) = tracked.and_then(|one| one.tokens.get_mut(request)) {
            held.tried_at = Some(Instant::now());
            held.unconfirmed = true;
        }
        drop(state);
        self.wake.notify_one();
    }

    /// Reads from disk what an earlier process had, once.
    async fn load_tokens(&self, pod: &Pod) {
        let unknown = |shared: &Self| {
            let mut state = shared.state();
            let tracked = state.pods.get_mut(&pod.uid);
            tracked.is_some_and(|one| !std::mem::replace(&mut one.tokens_loaded, true))
        };
        if !unknown(self) {
            return;
        }
        let file = FileKey::Tokens(pod.uid.clone());
        let Some(record) = self.files.load::<TokensRecord>(&file).await else {
            return;
        };
        let mut state = self.state();
        if let Some(tracked) = state.pods.get_mut(&pod.uid) {
            for (request, token) in record.tokens {
                let held = Held::new(pod, &request, token);
                tracked.tokens.entry(request).or_insert(held);
            }
        }
        drop(state);
        self.wake.notify_one();
    }
}

/// The pod's service account; the API server always sets one.
fn account(pod: &Pod) -> &str {
    match &*pod.spec.service_account {
        "" => "default",
        account => account,
    }
}

/// For the file.
pub(super) fn record<'a>(
    tokens: impl Iterator<Item = (&'a TokenRequest, &'a Held)>,
) -> TokensRecord {
    let tokens = tokens.map(|(request, held)| (request.clone(), held.token.clone()));
    TokensRecord {
        tokens: tokens.collect(),
    }
}

/// The moment as tokio counts time.
pub(super) fn instant_of(at: Timestamp, now: Timestamp) -> Instant {
    let left = Duration::try_from(at.duration_since(now)).unwrap_or_default();
    Instant::now() + left
}
