//! `--sort-by`: a path into the object, in the simple subset of JSONPath that users type.

use std::cmp::Ordering;

use anyhow::anyhow;
use serde_json::Value;

use super::super::failure::CommandError;

/// Path of the value to sort by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SortKey {
    text: String,
    /// A JSON pointer.
    pointer: String,
}

impl SortKey {
    /// Reads `.a.b[0].c`, `a.b` or `{.a.b}`; `['x/y']` names a key with special characters.
    pub(super) fn parse(text: &str) -> Result<Self, CommandError> {
        let wrong = || {
            CommandError::Usage(format!(
                "--sort-by {text:?} is no field path; write one like .metadata.creationTimestamp"
            ))
        };
        let inner = text
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'))
            .unwrap_or(text);
        let mut rest = inner.strip_prefix('$').unwrap_or(inner);
        let mut pointer = String::new();
        while !rest.is_empty() {
            let key;
            (key, rest) = if let Some(quoted) = rest.strip_prefix("['") {
                quoted.split_once("']").ok_or_else(wrong)?
            } else if let Some(index) = rest.strip_prefix('[') {
                let (index, rest) = index.split_once(']').ok_or_else(wrong)?;
                index.parse::<usize>().map_err(|_| wrong())?;
                (index, rest)
            } else {
                let name = rest.strip_prefix('.').unwrap_or(rest);
                name.split_at(name.find(['.', '[']).unwrap_or(name.len()))
            };
            if key.is_empty() || key.contains(['*', '?', ' ', '{', '}']) {
                return Err(wrong());
            }
            pointer.push('/');
            pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
        }
        if pointer.is_empty() {
            Err(wrong())
        } else {
            Ok(Self {
                text: text.to_owned(),
                pointer,
            })
        }
    }

    /// Sorts; objects without the field come first.
    pub(super) fn sort(&self, items: &mut [Value]) -> anyhow::Result<()> {
        if !items.is_empty()
            && items
                .iter()
                .all(|item| item.pointer(&self.pointer).is_none())
        {
            return Err(anyhow!(
                "no object has the field {} of --sort-by",
                self.text
            ));
        }
        items.sort_by(|a, b| compare(a.pointer(&self.pointer), b.pointer(&self.pointer)));
        Ok(())
    }
}

fn compare(a: Option<&Value>, b: Option<&Value>) -> Ordering {
    match (a, b) {
        (Some(Value::Number(a)), Some(Value::Number(b))) => a
            .as_f64()
            .unwrap_or_default()
            .total_cmp(&b.as_f64().unwrap_or_default()),
        (Some(Value::String(a)), Some(Value::String(b))) => natural(a, b),
        (Some(Value::Bool(a)), Some(Value::Bool(b))) => a.cmp(b),
        (Some(a), Some(b)) => a.to_string().cmp(&b.to_string()),
        (a, b) => a.is_some().cmp(&b.is_some()),
    }
}

/// Natural order, in which runs of digits compare as numbers: `web-2` before `web-10`.
fn natural(mut a: &str, mut b: &str) -> Ordering {
    loop {
        let (a_part, a_rest) = first_run(a);
        let (b_part, b_rest) = first_run(b);
        let is_digits = |part: &str| part.starts_with(|c: char| c.is_ascii_digit());
        let order = if is_digits(a_part) && is_digits(b_part) {
            let (a, b) = (
                a_part.trim_start_matches('0'),
                b_part.trim_start_matches('0'),
            );
            a.len().cmp(&b.len()).then_with(|| a.cmp(b))
        } else {
            a_part.cmp(b_part)
        };
        if order != Ordering::Equal || (a_rest.is_empty() && b_rest.is_empty()) {
            return order;
        }
        (a, b) = (a_rest, b_rest);
    }
}

/// Splits off the leading run of digits, or of everything else.
fn first_run(text: &str) -> (&str, &str) {
    let digits = text.starts_with(|c: char| c.is_ascii_digit());
    let end = text
        .find(|c: char| c.is_ascii_digit() != digits)
        .unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests;
