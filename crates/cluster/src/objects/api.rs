//! What is asked of the API server here.

use std::time::Duration;

use async_trait::async_trait;
use rubelet_kube::{ApiError, Change, Client, WatchTarget, Watcher};
use serde_json::Value;

use super::wire::{TokenAnswer, Wire};

/// There is a watch for each object, so they are to last longer than others; upstream's.
const LASTING: Duration = Duration::from_secs(30 * 60);

/// The API server, as far as objects of pods need it.
#[async_trait]
pub(super) trait Api: Send + Sync + 'static {
    /// Reads one object.
    async fn get(&self, path: &str) -> Result<Wire, ApiError>;

    /// Asks for a token.
    async fn token(&self, path: &str, request: &Value) -> Result<TokenAnswer, ApiError>;

    /// Lists and watches.
    fn watch(&self, target: WatchTarget) -> Box<dyn Feed>;
}

/// A watch that never gives up.
#[async_trait]
pub(super) trait Feed: Send + 'static {
    /// The next change.
    async fn next(&mut self) -> Change<Wire>;
}

#[async_trait]
impl Api for Client {
    async fn get(&self, path: &str) -> Result<Wire, ApiError> {
        Client::get(self, path).await
    }

    async fn token(&self, path: &str, request: &Value) -> Result<TokenAnswer, ApiError> {
        self.create(path, request).await
    }

    fn watch(&self, target: WatchTarget) -> Box<dyn Feed> {
        Box::new(Client::watch::<Wire>(self, target).lasting(LASTING))
    }
}

#[async_trait]
impl Feed for Watcher<Wire> {
    async fn next(&mut self) -> Change<Wire> {
        Watcher::next(self).await
    }
}
