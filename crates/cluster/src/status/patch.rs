//! The difference of two statuses as a strategic merge patch, with the directives that the API
//! server's own patch library would write.

use serde_json::{Map, Value, json};

use super::{
    conditions,
    merge::items,
    same::{is_empty, same},
};

/// The patch of the `status` subresource that turns `old` into `new` on the object with that UID
/// and no other. `None` if they are the same.
pub(super) fn patch(uid: &str, old: &Value, new: &Value) -> Option<Value> {
    let (empty, mut changes) = (Map::new(), Map::new());
    let old = old.as_object().unwrap_or(&empty);
    let new = new.as_object().unwrap_or(&empty);
    for (name, value) in new {
        let before = old.get(name).unwrap_or(&Value::Null);
        if same(before, value) {
            continue;
        }
        match &**name {
            "conditions" => {
                // Their order has no meaning.
                let list = changed_conditions(items(before), items(value));
                if !list.is_empty() {
                    let order: Vec<_> = items(value).iter().map(conditions::key).collect();
                    changes.insert(format!("$setElementOrder/{name}"), order.into());
                    changes.insert(name.clone(), list.into());
                }
            }
            // Their order counts, and a merge would keep that of the old ones.
            "podIPs" | "hostIPs" => {
                let mut list = vec![json!({ "$patch": "replace" })];
                list.extend_from_slice(items(value));
                changes.insert(name.clone(), list.into());
            }
            _ => {
                changes.insert(name.clone(), value.clone());
            }
        }
    }
    for (name, value) in old {
        if !new.contains_key(name) && !is_empty(value) {
            changes.insert(name.clone(), Value::Null);
        }
    }
    if changes.is_empty() {
        return None;
    }
    Some(json!({ "metadata": { "uid": uid }, "status": changes }))
}

/// The new, changed and removed conditions.
fn changed_conditions(old: &[Value], new: &[Value]) -> Vec<Value> {
    let find = |list: &[Value], one: &Value| {
        let mut kinds = list.iter().map(conditions::kind);
        kinds.position(|kind| kind == conditions::kind(one))
    };
    let mut patch = Vec::new();
    for condition in new {
        let before = find(old, condition).and_then(|at| old.get(at));
        if before.is_some_and(|before| same(before, condition)) {
            continue;
        }
        let mut condition = condition.clone();
        let fields = before.and_then(Value::as_object).into_iter().flatten();
        for (field, value) in fields {
            if !is_empty(value) && condition[field].is_null() {
                condition[field] = Value::Null;
            }
        }
        patch.push(condition);
    }
    for condition in old {
        if find(new, condition).is_none() {
            let mut gone = conditions::key(condition);
            gone["$patch"] = "delete".into();
            patch.push(gone);
        }
    }
    patch
}
