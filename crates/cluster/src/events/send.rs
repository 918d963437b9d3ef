//! The calls.

use rubelet_kube::{Client, PatchKind};
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::call_error::CallError;

/// The calls to the API server that the task makes.
pub(super) trait EventApi: Clone + Send + Sync + 'static {
    /// Creates an event.
    fn create(
        &self,
        namespace: &str,
        body: Value,
    ) -> impl Future<Output = Result<(), CallError>> + Send + 'static;

    /// Changes an event.
    fn patch(
        &self,
        namespace: &str,
        name: &str,
        body: Value,
    ) -> impl Future<Output = Result<(), CallError>> + Send + 'static;
}

impl EventApi for Client {
    fn create(
        &self,
        namespace: &str,
        body: Value,
    ) -> impl Future<Output = Result<(), CallError>> + Send + 'static {
        let path = format!("/api/v1/namespaces/{namespace}/events");
        let client = self.clone();
        async move {
            let _: IgnoredAny = Client::create(&client, &path, &body).await?;
            Ok(())
        }
    }

    fn patch(
        &self,
        namespace: &str,
        name: &str,
        body: Value,
    ) -> impl Future<Output = Result<(), CallError>> + Send + 'static {
        let path = format!("/api/v1/namespaces/{namespace}/events/{name}");
        let client = self.clone();
        async move {
            let kind = PatchKind::StrategicMerge;
            let _: IgnoredAny = Client::patch(&client, &path, kind, &body).await?;
            Ok(())
        }
    }
}
