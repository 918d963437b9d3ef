//! Creates a review at the API server, with retries within a deadline.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use rubelet_base::ErrorChain;
use rubelet_http_core::user::AuthError;
use rubelet_kube::{ApiError, Client};
use rubelet_yaml::read_value;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::{sleep, timeout};

/// Timeout of a review, as in the kubelet.
const DEADLINE: Duration = Duration::from_secs(10);

/// Attempts for each review, and the delay after the first failure, which grows by half each time. As in
/// the kubelet.
const MAX_TRIES: u32 = 5;
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(500);

/// Reviews have a rate limit of their own: pod statuses do not delay them, and an unauthenticated
/// client with many tokens does not delay the statuses.
const REVIEWS_PER_SECOND: f32 = 20.0;
const BURST: u32 = 40;

/// Creates reviews.
#[async_trait]
pub(super) trait ReviewApi: Send + Sync + 'static {
    /// Creates a review and returns it with its answer.
    async fn review(&self, path: &str, body: &Value) -> Result<Value, ApiError>;
}

#[async_trait]
impl ReviewApi for Client {
    async fn review(&self, path: &str, body: &Value) -> Result<Value, ApiError> {
        self.create(path, body).await
    }
}

/// A client for reviews only.
pub(super) fn review_client(client: &Client) -> Arc<dyn ReviewApi> {
    Arc::new(client.with_limits(REVIEWS_PER_SECOND, BURST, DEADLINE))
}

/// Retries until there is a result, the error is permanent, or the deadline has passed.
pub(super) async fn ask(
    api: Arc<dyn ReviewApi>,
    path: &'static str,
    body: Value,
) -> Result<Value, AuthError> {
    let failed = |what: &dyn std::fmt::Display| AuthError(format!("{path}: {what}"));
    let tries = async {
        let mut wait = FIRST_RETRY_DELAY;
        let mut tries = 0;
        loop {
            tries += 1;
            match api.review(path, &body).await {
                Ok(review) => return Ok(review),
                Err(error) if error.is_transient() && tries < MAX_TRIES => {
                    sleep(error.retry_after().unwrap_or(wait).max(wait)).await;
                    wait = wait * 3 / 2;
                }
                Err(error) => return Err(failed(&ErrorChain(&error))),
            }
        }
    };
    timeout(DEADLINE, tries)
        .await
        .unwrap_or_else(|_| Err(failed(&"no response from the API server within 10s")))
}

/// Reads a review. A field that cannot be read makes it an error: without that field a denial might
/// look like a permission.
pub(super) fn read<T: DeserializeOwned>(path: &str, review: &Value) -> Result<T, AuthError> {
    let unusable =
        |what: &dyn std::fmt::Display| AuthError(format!("{path}: invalid response: {what}"));
    let read = read_value::<T>(review).map_err(|error| unusable(&error))?;
    match read.left_out.first() {
        Some(left_out) => Err(unusable(left_out)),
        None => Ok(read.value),
    }
}
