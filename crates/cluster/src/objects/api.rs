//! The requests to the API server that are made here.

use std::time::Duration;

use async_trait::async_trait;
use rubelet_kube::{ApiError, Change, Client, WatchTarget, Watcher};
use serde_json::Value;

use super::wire::{WireAccount, WireObject, WireTokenRequest};

/// There is a watch for each object, so they must last longer than others; upstream's.
const MIN_WATCH_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// The API server, as far as objects of pods need it.
#[async_trait]
pub(super) trait ObjectsApi: Send + Sync + 'static {
    /// Reads one object.
    async fn get(&self, path: &str) -> Result<WireObject, ApiError>;

    /// Reads a service account.
    async fn account(&self, path: &str) -> Result<WireAccount, ApiError>;

    /// Requests a token.
    async fn token(&self, path: &str, request: &Value) -> Result<WireTokenRequest, ApiError>;

    /// Lists and watches.
    fn watch(&self, target: WatchTarget) -> Box<dyn ObjectWatch>;
}

/// A watch that never ends.
#[async_trait]
pub(super) trait ObjectWatch: Send + 'static {
    /// The next change.
    async fn next(&mut self) -> Change<WireObject>;
}

#[async_trait]
impl ObjectsApi for Client {
    async fn get(&self, path: &str) -> Result<WireObject, ApiError> {
        Client::get(self, path).await
    }

    async fn account(&self, path: &str) -> Result<WireAccount, ApiError> {
        Client::get(self, path).await
    }

    async fn token(&self, path: &str, request: &Value) -> Result<WireTokenRequest, ApiError> {
        self.create(path, request).await
    }

    fn watch(&self, target: WatchTarget) -> Box<dyn ObjectWatch> {
        Box::new(Client::watch::<WireObject>(self, target).min_timeout(MIN_WATCH_TIMEOUT))
    }
}

#[async_trait]
impl ObjectWatch for Watcher<WireObject> {
    async fn next(&mut self) -> Change<WireObject> {
        Watcher::next(self).await
    }
}
