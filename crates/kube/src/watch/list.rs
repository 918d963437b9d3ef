//! A list in pages.

use std::borrow::Cow;

use rubelet_yaml::read_json;
use serde::{
    Deserialize,
    de::{DeserializeOwned, Error as _},
};
use serde_json::value::RawValue;

use super::{event, target::WatchTarget, unreadable::WatchUnreadable};
use crate::{
    client::Client,
    error::{ApiError, BodyError},
};

/// All objects, and the version from which a watch misses nothing.
pub(super) struct Listed<T> {
    pub(super) items: Vec<T>,
    pub(super) version: Box<str>,
}

/// A page in the usual form, read without copying.
#[derive(Deserialize)]
struct Page<'a> {
    kind: Option<Cow<'a, str>>,
    metadata: Option<PageMeta>,
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
}

/// A page in any other form.
#[derive(Default, Deserialize)]
#[serde(default)]
struct OddPage {
    kind: String,
    metadata: Option<PageMeta>,
    items: Option<Vec<Box<RawValue>>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PageMeta {
    resource_version: Box<str>,
    #[serde(rename = "continue")]
    continues: String,
}

/// Lists everything, as fresh as the server can make it.
pub(super) async fn list<T: DeserializeOwned>(
    client: &Client,
    target: &WatchTarget,
    unreadable: &mut WatchUnreadable,
) -> Result<Listed<T>, ApiError> {
    unreadable.list_begins();
    let listed = match pages(client, target, unreadable, true).await {
        // A later page came too late. Without pages that can't happen again.
        Err(error) if error.is_gone() => pages(client, target, unreadable, false).await,
        listed => listed,
    }?;
    unreadable.list_ended();
    Ok(listed)
}

async fn pages<T: DeserializeOwned>(
    client: &Client,
    target: &WatchTarget,
    unreadable: &mut WatchUnreadable,
    paged: bool,
) -> Result<Listed<T>, ApiError> {
    let mut items = Vec::new();
    let mut continues = String::new();
    loop {
        let body = client.page(&target.list_path(paged, &continues)).await?;
        let meta = read_page(&body, |object| {
            let meta = || event::meta(object.as_bytes());
            match read_json(object.as_bytes()) {
                Ok(read) => items.push(unreadable.read(meta, read)),
                Err(error) => unreadable.unreadable(&meta(), error.to_string()),
            }
        })?;
        continues = meta.continues;
        if continues.is_empty() {
            return Ok(Listed {
                items,
                version: meta.resource_version,
            });
        }
    }
}

/// Reads a page, one item after the other. Null, absent and empty items mean the same; but an
/// answer that is no list must not count as an empty one, since what is not listed counts as gone.
fn read_page(body: &[u8], mut item: impl FnMut(&str)) -> Result<PageMeta, ApiError> {
    let not_json = |error| ApiError::Body(BodyError::Json(error));
    let no_list = |problem: &str| not_json(serde_json::Error::custom(problem));
    let (kind, meta, has_items) = match serde_json::from_slice::<Page<'_>>(body) {
        Ok(page) => {
            let has_items = page.items.is_some();
            for object in page.items.into_iter().flatten() {
                item(object.get());
            }
            (
                page.kind.unwrap_or_default().into(),
                page.metadata,
                has_items,
            )
        }
        Err(_) => {
            let read = read_json::<OddPage>(body).map_err(not_json)?;
            if let Some(left_out) = read.left_out.iter().find(|one| one.field == "items") {
                return Err(no_list(&left_out.to_string()));
            }
            let page = read.value;
            let has_items = page.items.is_some();
            for object in page.items.into_iter().flatten() {
                item(object.get());
            }
            (page.kind, page.metadata, has_items)
        }
    };
    let meta = meta.unwrap_or_default();
    let is_list = match &*kind {
        "" => has_items || !meta.resource_version.is_empty(),
        kind => kind.ends_with("List"),
    };
    match is_list {
        true => Ok(meta),
        false => Err(no_list("not a list")),
    }
}
