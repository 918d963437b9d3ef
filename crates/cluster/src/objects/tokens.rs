//! Service account tokens: requested, kept, and replaced in time.

use std::time::Duration;

use jiff::Timestamp;
use rubelet_api::{objects::Token, pod::Pod};
use rubelet_base::ErrorChain;
use rubelet_kube::ApiError;
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, warn};

use super::{
    files::FileKey,
    object_refs::{TokenRequest, is_name},
    read::STALE_FALLBACK,
    read_error::ObjectReadError,
    records::{HeldToken, TokensRecord},
    shared::{ObjectsInner, TrackedPod},
    token_rules::by_own_clock,
    tracked_token::TrackedToken,
    wire::WireTokenRequest,
};

/// Pauses before a pod's first token, or its service account, is requested again. The API server
/// checks such requests against caches of pods: they may not know yet that a pod which was bound a
/// moment ago is on this node.
const CACHE_LAG_DELAYS: [Duration; 4] = [
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(400),
];

/// Requests something that a new pod names, and retries where that is refused.
pub(super) async fn retry_past_cache_lag<T, A>(
    pod: &Pod,
    ask: impl Fn() -> A,
) -> Result<T, ApiError>
where
    A: Future<Output = Result<T, ApiError>>,
{
    for pause in CACHE_LAG_DELAYS {
        match ask().await {
            Err(error) if error.is_forbidden() || error.is_not_found() => {
                debug!(pod = %pod.name, error = %ErrorChain(&error), "The API server rejected a request for a new pod; retrying");
                sleep(pause).await;
            }
            answer => return answer,
        }
    }
    ask().await
}

impl ObjectsInner {
    /// A token that is valid now; an old one only while the API server is unreachable.
    pub(super) async fn token(
        &self,
        pod: &Pod,
        request: &TokenRequest,
    ) -> Result<Token, ObjectReadError> {
        let account = account(pod);
        if !is_name(account) {
            return Err(ObjectReadError::TokenAccountNotFound(account.to_owned()));
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
            (Err(error), None) => Err(ObjectReadError::Token(error)),
            (Err(error), Some((old, _))) => {
                if old.expires_at <= now && !error.is_transient() {
                    return Err(ObjectReadError::TokenExpired {
                        token: format!(
                            "{:?}/{:?}/{:?}/{}",
                            account, pod.name.namespace, request.audience, request.seconds
                        ),
                        source: error,
                    });
                }
                warn!(pod = %pod.name, audience = %request.audience, expires_at = %old.expires_at, error = %ErrorChain(&error), "Cannot refresh a service account token; using the old one");
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
    ) -> Result<WireTokenRequest, ApiError> {
        let namespace = &pod.name.namespace;
        let path = format!(
            "/api/v1/namespaces/{namespace}/serviceaccounts/{}/token",
            account(pod)
        );
        let audiences: Vec<&str> = [&*request.audience]
            .into_iter()
            .filter(|audience| !audience.is_empty())
            .collect();
        let mut body = json!({
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
        if request.is_for_pulls() {
            body["metadata"] = json!({ "uid": request.account_uid });
        }
        if has_old {
            let call = timeout(STALE_FALLBACK, self.api.token(&path, &body));
            return call.await.unwrap_or(Err(ApiError::TimedOut));
        }
        let ask = || self.api.token(&path, &body);
        match self.was_asked(pod) {
            true => ask().await,
            false => retry_past_cache_lag(pod, ask).await,
        }
    }

    /// Whether a token was requested before for this pod; notes the request.
    fn was_asked(&self, pod: &Pod) -> bool {
        let mut state = self.state();
        let tracked = state.pods.get_mut(&pod.uid);
        tracked.is_none_or(|one| std::mem::replace(&mut one.asked_for_token, true))
    }

    fn held(&self, pod: &Pod, request: &TokenRequest) -> Option<(HeldToken, Timestamp)> {
        let state = self.state();
        let held = state.pods.get(&pod.uid)?.tokens.get(request)?;
        Some((held.token.clone(), held.refresh_at))
    }

    fn keep(&self, pod: &Pod, request: &TokenRequest, token: HeldToken) {
        let mut state = self.state();
        if let Some(tracked) = state.pods.get_mut(&pod.uid) {
            let held = TrackedToken {
                // One that has expired already is not requested again at once.
                tried_at: Some(Instant::now()),
                ..TrackedToken::new(pod, request, token)
            };
            if request.is_for_pulls() {
                // Of an account that was made again, the older one's are of no use.
                let account = &request.account_uid;
                let is_of = |other: &TokenRequest| other.account_uid == *account;
                let tokens = &mut tracked.tokens;
                tokens.retain(|other, _| !other.is_for_pulls() || is_of(other));
            }
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
            // A token for pulls is not requested again while nothing is pulled.
            held.unconfirmed = !request.is_for_pulls();
        }
        drop(state);
        self.wake.notify_one();
    }

    /// Reads from disk what an earlier process had, once.
    pub(super) async fn load_tokens(&self, pod: &Pod) {
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
                let held = TrackedToken::new(pod, &request, token);
                // A token that came during the read is newer.
                tracked.tokens.entry(request).or_insert(held);
            }
            tracked.account = tracked.account.take().or(record.account);
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
pub(super) fn record(tracked: &TrackedPod) -> TokensRecord {
    let tokens = tracked.tokens.iter();
    let tokens = tokens.map(|(request, held)| (request.clone(), held.token.clone()));
    TokensRecord {
        tokens: tokens.collect(),
        account: tracked.account.clone(),
    }
}

/// The moment as tokio counts time.
pub(super) fn instant_of(at: Timestamp, now: Timestamp) -> Instant {
    let left = Duration::try_from(at.duration_since(now)).unwrap_or_default();
    Instant::now() + left
}
