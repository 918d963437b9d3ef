//! JSON patch (RFC 6902) with the crate `json-patch` and the deviations of upstream's library: `replace` also
//! sets a missing field, a `test` for null succeeds for a missing field, and a `copy` of a missing field is
//! null.

use json_patch::{AddOperation, PatchOperation};
use serde_json::Value;

use super::PatchError;

/// Maximum number of operations in one patch.
const MAX_OPERATIONS: usize = 10_000;

/// Maximum number of bytes that all copies of one patch add.
const MAX_COPIED: usize = 3 * 1024 * 1024;

pub(super) fn apply(object: &Value, body: &[u8]) -> Result<Value, PatchError> {
    let operations: Vec<PatchOperation> = serde_json::from_slice(body)
        .map_err(|error| PatchError::Malformed(format!("error decoding patch: {error}")))?;
    if operations.len() > MAX_OPERATIONS {
        return Err(PatchError::TooLarge(format!(
            "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
            operations.len()
        )));
    }
    let mut object = object.clone();
    let mut copied = 0;
    for operation in operations {
        let Some(operation) = as_upstream(&object, operation) else {
            continue;
        };
        if let PatchOperation::Copy(copy) = &operation {
            let value = object.pointer(copy.from.as_str());
            copied += value.map_or(0, |value| value.to_string().len());
            if copied > MAX_COPIED {
                let message = format!("the copies add more than {MAX_COPIED} bytes");
                return Err(PatchError::Inapplicable(message));
            }
        }
        json_patch::patch(&mut object, &[operation])
            .map_err(|error| PatchError::Inapplicable(error.to_string()))?;
    }
    Ok(object)
}

/// The operation with the effect that upstream's library has; `None` if it has no effect.
fn as_upstream(object: &Value, operation: PatchOperation) -> Option<PatchOperation> {
    let is_missing_field = |path: &str| {
        let holder = path.rsplit_once('/').map(|(holder, _)| holder);
        let holder = holder.and_then(|holder| object.pointer(holder));
        object.pointer(path).is_none() && holder.is_some_and(Value::is_object)
    };
    match operation {
        PatchOperation::Replace(replace) if is_missing_field(replace.path.as_str()) => {
            Some(PatchOperation::Add(AddOperation {
                path: replace.path,
                value: replace.value,
            }))
        }
        PatchOperation::Copy(copy) if is_missing_field(copy.from.as_str()) => {
            Some(PatchOperation::Add(AddOperation {
                path: copy.path,
                value: Value::Null,
            }))
        }
        PatchOperation::Test(test)
            if test.value.is_null() && is_missing_field(test.path.as_str()) =>
        {
            None
        }
        other => Some(other),
    }
}
