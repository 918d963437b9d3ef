//! Lists, whole or in chunks, of the current or of an earlier version.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    StatusError, base64, event_conversion,
    request::Request,
    selection::Selection,
    state::ServerState,
    store::{Compacted, Key, Objects},
};

/// Start of the next chunk of a list.
struct Continue {
    version: u64,
    after: Key,
}

pub(super) fn list(shared: &ServerState, request: &Request) -> Result<Value, StatusError> {
    let (kind, query) = (request.kind(), &request.query);
    let selection = Selection::read(&request.target, query)?;
    let next = match query.text("continue") {
        "" => None,
        token => Some(Continue::read(token)?),
    };
    let wanted = query.number("resourceVersion")?.unwrap_or(0);
    let limit = query.number("limit")?.unwrap_or(0);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let exact = query.text("resourceVersionMatch") == "Exact";
    if exact && wanted == 0 {
        let message = "resourceVersionMatch: Forbidden: resourceVersionMatch \"exact\" is forbidden \
                       for resourceVersion \"0\"";
        return Err(StatusError::bad_request(message));
    }
    let (version, objects) = shared.with_store(|store| {
        let now = store.version();
        if wanted > now {
            return Err(StatusError::too_new(wanted, now));
        }
        let version = match &next {
            Some(next) => next.version,
            None if exact => wanted,
            None => now,
        };
        let objects = store.at(kind.storage, version);
        Ok((
            version,
            objects.map_err(|gone| too_old(gone, next.is_some()))?,
        ))
    })?;
    let mut items = Vec::new();
    let mut selected = selected(&objects, &selection, next.as_ref().map(|next| &next.after));
    let mut last = None;
    for (key, object) in selected.by_ref() {
        let mut item = event_conversion::from_storage(kind, object);
        // In lists, items have no type.
        if let Some(fields) = item.as_object_mut() {
            fields.remove("kind");
            fields.remove("apiVersion");
        }
        items.push(item);
        if limit > 0 && items.len() == limit {
            last = Some(key);
            break;
        }
    }
    let remaining = selected.count();
    let mut metadata = json!({ "resourceVersion": version.to_string() });
    if let Some(after) = last.filter(|_| remaining > 0) {
        metadata["continue"] = Continue::token(version, after).into();
        // With selectors the API server does not count the remaining items.
        if query.text("labelSelector").is_empty() && query.text("fieldSelector").is_empty() {
            metadata["remainingItemCount"] = remaining.into();
        }
    }
    Ok(json!({
        "kind": format!("{}List", kind.kind),
        "apiVersion": kind.api_version(),
        "metadata": metadata,
        "items": items,
    }))
}

fn selected<'a>(
    objects: &'a Objects,
    selection: &'a Selection,
    after: Option<&'a Key>,
) -> impl Iterator<Item = (&'a Key, &'a Arc<Value>)> {
    objects
        .iter()
        .filter(move |(key, _)| after.is_none_or(|after| *key > after))
        .filter(|(_, object)| selection.matches(object))
}

fn too_old(gone: Compacted, is_continued: bool) -> StatusError {
    if is_continued {
        return StatusError::expired(
            "The provided continue parameter is too old to display a consistent list result. You \
             can start a new list without the continue parameter.",
        );
    }
    let message = format!(
        "The resourceVersion for the provided list is too old ({}).",
        gone.oldest
    );
    StatusError::expired(message)
}

impl Continue {
    fn token(version: u64, (namespace, name): &Key) -> String {
        let token = json!({ "v": "meta.k8s.io/v1", "rv": version, "ns": namespace, "name": name });
        base64::encode_url(token.to_string().as_bytes())
    }

    fn read(token: &str) -> Result<Self, StatusError> {
        let read = || {
            let value: Value = serde_json::from_slice(&base64::decode(token)?).ok()?;
            Some(Self {
                version: value["rv"].as_u64()?,
                after: (
                    value["ns"].as_str()?.to_owned(),
                    value["name"].as_str()?.to_owned(),
                ),
            })
        };
        read().ok_or_else(|| StatusError::bad_request("continue key is not valid"))
    }
}
