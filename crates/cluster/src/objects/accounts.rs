//! Service accounts of pods, for programs that give credentials of image pulls.
//!
//! They are read when an image is pulled and not watched: a node may read the service accounts of its pods one by
//! one, and watch none.

use rubelet_api::pod::Pod;
use rubelet_base::ErrorChain;
use rubelet_kube::ApiError;
use rubelet_node_state::objects::ServiceAccount;
use tokio::time::timeout;
use tracing::warn;

use super::{
    files::FileKey,
    object_refs::{TokenRequest, is_name},
    read::STALE_FALLBACK,
    read_error::ObjectReadError,
    records::AccountRecord,
    shared::ObjectsInner,
    tokens::retry_past_cache_lag,
};

/// Requested lifetime of tokens for image pulls, in seconds: the API server's default.
const LIFETIME: u64 = 3600;

/// The request for a token on behalf of a program.
pub(super) fn token_request(uid: &str, audience: &str) -> TokenRequest {
    TokenRequest {
        audience: audience.into(),
        seconds: LIFETIME,
        account_uid: uid.into(),
    }
}

impl ObjectsInner {
    /// The pod's current service account, or the last known one while the API server is unreachable.
    pub(super) async fn service_account(
        &self,
        pod: &Pod,
    ) -> Result<ServiceAccount, ObjectReadError> {
        let name = &*pod.spec.service_account;
        if !is_name(name) {
            return Err(ObjectReadError::ServiceAccountNotFound(name.to_owned()));
        }
        let namespace = &pod.name.namespace;
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}");
        let ask = || self.api.account(&path);
        let call = async {
            match self.was_account_asked(pod) {
                true => ask().await,
                false => retry_past_cache_lag(pod, ask).await,
            }
        };
        let answer = timeout(STALE_FALLBACK, call).await;
        match answer.unwrap_or(Err(ApiError::TimedOut)) {
            Ok(wire) => {
                let account = wire.account();
                if account.uid.is_empty() {
                    return Err(ObjectReadError::ServiceAccountWithoutUid(name.to_owned()));
                }
                self.keep_account(pod, &account);
                Ok(account)
            }
            Err(error) => {
                if error.is_transient()
                    && let Some(old) = self.old_account(pod).await
                {
                    warn!(pod = %pod.name, account = name, error = %ErrorChain(&error), "Cannot get a service account from the API server; using the last known version");
                    return Ok(old);
                }
                Err(error.into())
            }
        }
    }

    /// Whether it was requested before for this pod; notes the request.
    fn was_account_asked(&self, pod: &Pod) -> bool {
        let mut state = self.state();
        let tracked = state.pods.get_mut(&pod.uid);
        tracked.is_none_or(|one| std::mem::replace(&mut one.asked_for_account, true))
    }

    fn keep_account(&self, pod: &Pod, account: &ServiceAccount) {
        let mut state = self.state();
        let Some(tracked) = state.pods.get_mut(&pod.uid) else {
            return;
        };
        let record = AccountRecord {
            name: pod.spec.service_account.clone(),
            uid: account.uid.clone(),
            annotations: account.annotations.clone(),
        };
        if tracked.account.as_ref() == Some(&record) {
            return;
        }
        tracked.account = Some(record);
        drop(state);
        self.is_dirty(FileKey::Tokens(pod.uid.clone()));
    }

    async fn old_account(&self, pod: &Pod) -> Option<ServiceAccount> {
        self.load_tokens(pod).await;
        let state = self.state();
        let old = state.pods.get(&pod.uid)?.account.as_ref()?;
        (old.name == pod.spec.service_account).then(|| ServiceAccount {
            uid: old.uid.clone(),
            annotations: old.annotations.clone(),
        })
    }
}
