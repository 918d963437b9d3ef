//! The calls.

use rubelet_base::{PodName, PodUid};
use rubelet_kube::Client;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    call_error::CallError,
    status::{delete_now, path},
};

/// The calls to the API server that the task makes.
pub(super) trait MirrorApi: Send + Sync + 'static {
    /// Creates a pod; answers with its UID.
    fn create(
        &self,
        namespace: &str,
        body: Value,
    ) -> impl Future<Output = Result<PodUid, CallError>> + Send;

    /// Removes a pod at once, if it has this UID.
    fn delete(
        &self,
        pod: &PodName,
        uid: &PodUid,
    ) -> impl Future<Output = Result<(), CallError>> + Send;
}

/// The fields of the response that are used.
#[derive(Deserialize)]
struct CreatedPod {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    uid: PodUid,
}

impl MirrorApi for Client {
    async fn create(&self, namespace: &str, body: Value) -> Result<PodUid, CallError> {
        let path = format!("/api/v1/namespaces/{namespace}/pods");
        let answer: CreatedPod = Client::create(self, &path, &body).await?;
        Ok(answer.metadata.uid)
    }

    async fn delete(&self, pod: &PodName, uid: &PodUid) -> Result<(), CallError> {
        Ok(Client::delete(self, &path(pod), &delete_now(uid)).await?)
    }
}
