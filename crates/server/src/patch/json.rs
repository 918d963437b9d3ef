//! JSON patch (RFC 6902): operations are applied in order, all or none.

use serde_json::Value;

use super::PatchError;

/// One operation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Operation {
    Add(Pointer, Value),
    Remove(Pointer),
    Replace(Pointer, Value),
    Move { from: Pointer, to: Pointer },
    Copy { from: Pointer, to: Pointer },
    Test(Pointer, Value),
}

/// A JSON pointer (RFC 6901): its text, and its decoded tokens.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pointer {
    text: String,
    tokens: Vec<String>,
}

/// Maximum number of operations in a patch, as in the API server.
const MOST: usize = 10_000;

/// Bytes that all copies of one patch may add, estimated as JSON. The API server has this limit:
/// each copy of a document into itself doubles it.
const MOST_COPIED: usize = 3 * 1024 * 1024;

/// Maximum nesting of a document while it is patched. Values are cloned, serialized and dropped
/// recursively, on small stacks.
const DEEPEST: usize = 256;

/// Longest value that is shown in an error, in bytes.
const LONGEST_SHOWN: usize = 256;

/// Reads a list of operations.
pub(super) fn read(body: &[u8]) -> Result<Vec<Operation>, PatchError> {
    let malformed = |message: String| PatchError::Malformed(message);
    let value: Value = serde_json::from_slice(body)
        .map_err(|error| malformed(format!("the body is not JSON: {error}")))?;
    let Value::Array(list) = value else {
        return Err(malformed("a JSON patch is a list of operations".to_owned()));
    };
    if list.len() > MOST {
        return Err(malformed(format!("more than {MOST} operations")));
    }
    let operations = list.iter().enumerate();
    operations
        .map(|(index, one)| {
            operation(one).map_err(|error| malformed(format!("operation {index}: {error}")))
        })
        .collect()
}

fn operation(one: &Value) -> Result<Operation, String> {
    let place = |key: &str| match one[key].as_str() {
        Some(text) => pointer(text),
        None => Err(format!("{key:?} must be a text")),
    };
    let value = || match one.get("value") {
        Some(value) => Ok(value.clone()),
        None => Err(r#""value" is missing"#.to_owned()),
    };
    match one["op"].as_str() {
        Some("add") => Ok(Operation::Add(place("path")?, value()?)),
        Some("remove") => Ok(Operation::Remove(place("path")?)),
        Some("replace") => Ok(Operation::Replace(place("path")?, value()?)),
        Some("test") => Ok(Operation::Test(place("path")?, value()?)),
        Some("move") => Ok(Operation::Move {
            from: place("from")?,
            to: place("path")?,
        }),
        Some("copy") => Ok(Operation::Copy {
            from: place("from")?,
            to: place("path")?,
        }),
        _ => Err(format!(
            r#""op" is {}; it must be add, remove, replace, move, copy or test"#,
            one["op"]
        )),
    }
}

fn pointer(text: &str) -> Result<Pointer, String> {
    if !text.is_empty() && !text.starts_with('/') {
        return Err(format!("the path {text:?} does not begin with a slash"));
    }
    let tokens = text.split('/').skip(1);
    Ok(Pointer {
        text: text.to_owned(),
        tokens: tokens
            .map(|token| token.replace("~1", "/").replace("~0", "~"))
            .collect(),
    })
}

/// The document after all operations.
pub(super) fn apply(mut document: Value, operations: &[Operation]) -> Result<Value, PatchError> {
    let mut growth = Growth {
        copied: 0,
        depth: depth(&document),
    };
    for operation in operations {
        growth
            .admit(&mut document, operation)
            .and_then(|()| apply_one(&mut document, operation))
            .map_err(PatchError::Unfit)?;
    }
    Ok(document)
}

/// The growth of a document by the operations so far.
struct Growth {
    copied: usize,
    /// Upper bound of the document's nesting.
    depth: usize,
}

impl Growth {
    /// Refuses an operation that would make the document too large or too deep.
    fn admit(&mut self, document: &mut Value, operation: &Operation) -> Result<(), String> {
        match operation {
            Operation::Remove(_) | Operation::Test(..) => Ok(()),
            Operation::Add(to, value) | Operation::Replace(to, value) => {
                self.deepen(document, to, Some(depth(value)))
            }
            Operation::Move { to, .. } => self.deepen(document, to, None),
            Operation::Copy { from, to } => {
                self.copied = self.copied.saturating_add(size(found(document, from)?));
                if self.copied > MOST_COPIED {
                    return Err(format!("the copies add more than {MOST_COPIED} bytes"));
                }
                self.deepen(document, to, None)
            }
        }
    }

    /// A value of that depth, or a part of the document, is added at that place.
    fn deepen(
        &mut self,
        document: &Value,
        to: &Pointer,
        value: Option<usize>,
    ) -> Result<(), String> {
        let with = |depth: usize| depth.max(to.tokens.len() + value.unwrap_or(depth));
        if with(self.depth) > DEEPEST {
            // The bound grows with each move; the document's real depth counts.
            self.depth = depth(document);
        }
        self.depth = with(self.depth);
        match self.depth > DEEPEST {
            true => Err(format!(
                "the object would be nested more than {DEEPEST} deep"
            )),
            false => Ok(()),
        }
    }
}

fn depth(value: &Value) -> usize {
    1 + match value {
        Value::Array(entries) => entries.iter().map(depth).max().unwrap_or_default(),
        Value::Object(fields) => fields.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(entries) => 2 + entries.iter().map(|one| size(one) + 1).sum::<usize>(),
        Value::Object(fields) => {
            let fields = fields.iter();
            2 + fields
                .map(|(key, one)| key.len() + size(one) + 4)
                .sum::<usize>()
        }
        _ => 4,
    }
}

fn apply_one(document: &mut Value, operation: &Operation) -> Result<(), String> {
    match operation {
        Operation::Add(path, value) => add(document, path, value.clone()),
        Operation::Remove(path) => remove(document, path).map(drop),
        Operation::Replace(path, value) => {
            *found(document, path)? = value.clone();
            Ok(())
        }
        Operation::Copy { from, to } => {
            let value = found(document, from)?.clone();
            add(document, to, value)
        }
        Operation::Move { from, to } => {
            if to.tokens.len() > from.tokens.len() && to.tokens.starts_with(&from.tokens) {
                return Err(format!("{:?} cannot be moved into itself", from.text));
            }
            let value = remove(document, from)?;
            add(document, to, value)
        }
        Operation::Test(path, value) => {
            let there = found(document, path)?;
            if there == value {
                return Ok(());
            }
            let mut there = there.to_string();
            if there.len() > LONGEST_SHOWN {
                let end = (0..=LONGEST_SHOWN)
                    .rev()
                    .find(|at| there.is_char_boundary(*at));
                there.truncate(end.unwrap_or_default());
                there.push_str("...");
            }
            Err(format!("the test of {:?} failed: it is {there}", path.text))
        }
    }
}

fn missing(path: &Pointer) -> String {
    format!("there is nothing at {:?}", path.text)
}

fn found<'a>(document: &'a mut Value, path: &Pointer) -> Result<&'a mut Value, String> {
    let mut place = document;
    for token in &path.tokens {
        place = match place {
            Value::Object(fields) => fields.get_mut(token),
            Value::Array(entries) => index(token).and_then(|index| entries.get_mut(index)),
            _ => None,
        }
        .ok_or_else(|| missing(path))?;
    }
    Ok(place)
}

/// The parent of the place, and the last token of its path.
fn parent<'a, 'p>(
    document: &'a mut Value,
    path: &'p Pointer,
) -> Result<Option<(&'a mut Value, &'p str)>, String> {
    let Some((last, above)) = path.tokens.split_last() else {
        return Ok(None);
    };
    let mut place = document;
    for token in above {
        place = match place {
            Value::Object(fields) => fields.get_mut(token),
            Value::Array(entries) => index(token).and_then(|index| entries.get_mut(index)),
            _ => None,
        }
        .ok_or_else(|| missing(path))?;
    }
    Ok(Some((place, last)))
}

fn add(document: &mut Value, path: &Pointer, value: Value) -> Result<(), String> {
    let Some((holder, last)) = parent(document, path)? else {
        *document = value;
        return Ok(());
    };
    match holder {
        Value::Object(fields) => {
            fields.insert(last.to_owned(), value);
            Ok(())
        }
        Value::Array(entries) => {
            let at = match last {
                "-" => Some(entries.len()),
                token => index(token).filter(|at| *at <= entries.len()),
            };
            entries.insert(at.ok_or_else(|| missing(path))?, value);
            Ok(())
        }
        _ => Err(missing(path)),
    }
}

fn remove(document: &mut Value, path: &Pointer) -> Result<Value, String> {
    let Some((holder, last)) = parent(document, path)? else {
        return Ok(document.take());
    };
    match holder {
        Value::Object(fields) => fields.remove(last),
        Value::Array(entries) => index(last)
            .filter(|at| *at < entries.len())
            .map(|at| entries.remove(at)),
        _ => None,
    }
    .ok_or_else(|| missing(path))
}

/// An index without leading zeros or signs.
fn index(token: &str) -> Option<usize> {
    let plain = token == "0" || (!token.starts_with(['0', '+']) && !token.is_empty());
    plain.then(|| token.parse().ok()).flatten()
}

#[cfg(test)]
mod tests;
