//! The calls.

use rubelet_base::{PodName, PodUid};
use rubelet_kube::{Client, PatchKind, WatchReopener};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::call_error::CallError;

/// The calls to the API server that the task makes.
pub(super) trait StatusApi: Clone + Send + Sync + 'static {
    /// Patches the subresource `status`; answers with the object's new version.
    fn patch(
        &self,
        pod: &PodName,
        body: Value,
    ) -> impl Future<Output = Result<Box<str>, CallError>> + Send + 'static;

    /// Removes a pod at once, if it has this UID.
    fn delete(
        &self,
        pod: &PodName,
        uid: &PodUid,
    ) -> impl Future<Output = Result<(), CallError>> + Send + 'static;

    /// Opens the watch of the pods again, from where it was.
    fn reopen_watch(&self);
}

/// The fields of the response that are used.
#[derive(Default, Deserialize)]
#[serde(default)]
struct PatchedPod {
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    resource_version: Box<str>,
}

/// The path of a pod.
pub(crate) fn path(pod: &PodName) -> String {
    format!("/api/v1/namespaces/{}/pods/{}", pod.namespace, pod.name)
}

/// Options that remove a pod at once, if it has this UID.
pub(crate) fn delete_now(uid: &PodUid) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "gracePeriodSeconds": 0,
        "preconditions": { "uid": uid.as_str() },
    })
}

/// The API server, and the watch that shows what it has.
#[derive(Clone)]
pub(super) struct StatusClient {
    pub(super) client: Client,
    pub(super) reopener: WatchReopener,
}

impl StatusApi for StatusClient {
    fn patch(
        &self,
        pod: &PodName,
        body: Value,
    ) -> impl Future<Output = Result<Box<str>, CallError>> + Send + 'static {
        let (client, path) = (self.client.clone(), format!("{}/status", path(pod)));
        async move {
            let kind = PatchKind::StrategicMerge;
            let answer: PatchedPod = client.patch(&path, kind, &body).await?;
            Ok(answer.metadata.resource_version)
        }
    }

    fn delete(
        &self,
        pod: &PodName,
        uid: &PodUid,
    ) -> impl Future<Output = Result<(), CallError>> + Send + 'static {
        let (client, path, options) = (self.client.clone(), path(pod), delete_now(uid));
        async move { Ok(client.delete(&path, &options).await?) }
    }

    fn reopen_watch(&self) {
        self.reopener.reopen();
    }
}
