//! Asking the API server for a judgement: a few times within a deadline.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use rubelet_base::ErrorChain;
use rubelet_kube::{ApiError, Client};
use rubelet_server::secure::AuthError;
use rubelet_yaml::read_value;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::{sleep, timeout};

/// Without a judgement by then there is none. As the kubelet has it.
const DEADLINE: Duration = Duration::from_secs(10);

/// How often one is asked for, and how long is waited after the first failure; then half as long
/// again each time. As the kubelet has it.
const TRIES: u32 = 5;
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// Reviews have a rate of their own: neither do statuses of pods hold them up, nor does a stranger
/// with many tokens hold up the statuses.
const REVIEWS_PER_SECOND: f32 = 20.0;
const BURST: u32 = 40;

/// Where judgements come from.
#[async_trait]
pub(super) trait Judge: Send + Sync + 'static {
    /// Creates a review and returns it with its answer.
    async fn review(&self, path: &str, body: &Value) -> Result<Value, ApiError>;
}

#[async_trait]
impl Judge for Client {
    async fn review(&self, path: &str, body: &Value) -> Result<Value, ApiError> {
        self.create(path, body).await
    }
}

/// A client for reviews only.
pub(super) fn judge(client: &Client) -> Arc<dyn Judge> {
    Arc::new(client.with_limits(REVIEWS_PER_SECOND, BURST, DEADLINE))
}

/// Asks until there is a judgement, the failure is a lasting one, or the time is over.
pub(super) async fn ask(
    judge: Arc<dyn Judge>,
    path: &'static str,
    body: Value,
) -> Result<Value, AuthError> {
    let failed = |what: &dyn std::fmt::Display| AuthError(format!("{path}: {what}"));
    let tries = async {
        let mut wait = FIRST_WAIT;
        let mut tries = 0;
        loop {
            tries += 1;
            match judge.review(path, &body).await {
                Ok(review) => return Ok(review),
                Err(error) if error.is_transient() && tries < TRIES => {
                    sleep(error.retry_after().unwrap_or(wait).max(wait)).await;
                    wait = wait * 3 / 2;
                }
                Err(error) => return Err(failed(&ErrorChain(&error))),
            }
        }
    };
    timeout(DEADLINE, tries)
        .await
        .unwrap_or_else(|_| Err(failed(&"no judgement by the API server within 10s")))
}

/// What an answer says. A field that can't be read makes it no judgement: without it the answer might
/// say yes where it says no.
pub(super) fn read<T: DeserializeOwned>(path: &str, review: &Value) -> Result<T, AuthError> {
    let unusable = |what: &dyn std::fmt::Display| {
        AuthError(format!("{path}: the answer can't be used: {what}"))
    };
    let read = read_value::<T>(review).map_err(|error| unusable(&error))?;
    match read.left_out.first() {
        Some(left_out) => Err(unusable(left_out)),
        None => Ok(read.value),
    }
}
