//! A list in pages.

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use super::{event, target::WatchTarget};
use crate::{
    client::Client,
    error::{ApiError, BodyError},
};

/// All objects, and the version from which a watch misses nothing.
pub(super) struct Listed<T> {
    pub(super) items: Vec<T>,
    pub(super) version: Box<str>,
}

#[derive(Deserialize)]
struct Page<'a> {
    metadata: PageMeta,
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMeta {
    #[serde(default)]
    resource_version: Box<str>,
    #[serde(default, rename = "continue")]
    continues: String,
}

/// Lists everything, as fresh as the server can make it.
pub(super) async fn list<T: DeserializeOwned>(
    client: &Client,
    target: &WatchTarget,
) -> Result<Listed<T>, ApiError> {
    match pages(client, target, true).await {
        // A later page came too late. Without pages that can't happen again.
        Err(error) if error.is_gone() => pages(client, target, false).await,
        listed => listed,
    }
}

async fn pages<T: DeserializeOwned>(
    client: &Client,
    target: &WatchTarget,
    paged: bool,
) -> Result<Listed<T>, ApiError> {
    let mut items = Vec::new();
    let mut continues = String::new();
    loop {
        let body = client.page(&target.list_path(paged, &continues)).await?;
        let page: Page<'_> = serde_json::from_slice(&body)
            .map_err(|error| ApiError::Body(BodyError::Json(error)))?;
        for object in page.items.into_iter().flatten() {
            match serde_json::from_str(object.get()) {
                Ok(item) => items.push(item),
                Err(error) => {
                    let meta = event::meta(object.get()).unwrap_or_default();
                    unread(target, &meta, &error.to_string());
                }
            }
        }
        continues = page.metadata.continues;
        if continues.is_empty() {
            return Ok(Listed {
                items,
                version: page.metadata.resource_version,
            });
        }
    }
}

/// Says which object is passed over.
pub(super) fn unread(target: &WatchTarget, meta: &event::Meta, problem: &str) {
    tracing::warn!(
        collection = %target,
        namespace = %meta.namespace,
        name = %meta.name,
        problem,
        "an object of the API server cannot be read and is passed over"
    );
}
