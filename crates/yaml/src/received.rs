//! JSON that a program sent, read as Go clients read it and a little more leniently: null, absent
//! and empty are one, unknown fields pass, and a field of the wrong type costs that field only.
//!
//! The good path decodes the text at once. Only what fails is parsed into a value, walked, and walked
//! again without the field that failed. Each field that is left out is reported.

use std::{borrow::Cow, fmt};

use serde::de::{DeserializeOwned, Error as _};
use serde_json::Value;

use crate::{
    decode::{self, Rules},
    path::{self, Step},
    wording::TypeError,
};

/// Fields that are left out one by one. Of more, what holds them is left out, and so on upwards: the
/// work is bounded however much of a large object is wrong.
const ONE_BY_ONE: usize = 8;

/// What was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received<T> {
    /// The value.
    pub value: T,
    /// The fields that could not be read, in the order in which they were found. The value is what it
    /// would be if they were absent.
    pub left_out: Vec<LeftOut>,
}

/// A field that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Its path, such as `status.images[0].names`. The indices do not count items of the same list
    /// that were left out before.
    pub field: String,
    /// What is wrong with it.
    pub problem: String,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() {
            return f.write_str(&self.problem);
        }
        write!(f, "{}: {}", self.field, self.problem)
    }
}

/// Reads JSON.
///
/// # Errors
/// The text is no JSON, or too much of it is not what `T` needs.
pub fn read_json<T: DeserializeOwned>(text: &[u8]) -> Result<Received<T>, serde_json::Error> {
    let error = match serde_json::from_slice(text) {
        Ok(value) => {
            return Ok(Received {
                value,
                left_out: Vec::new(),
            });
        }
        Err(error) => error,
    };
    let value: Result<Value, _> = match std::str::from_utf8(text) {
        Ok(text) => serde_json::from_str(text),
        // As Go does it.
        Err(_) => serde_json::from_str(&String::from_utf8_lossy(text)),
    };
    read_value(&value.map_err(|_| error)?)
}

/// Reads a value that was parsed already.
///
/// # Errors
/// Too much of it is not what `T` needs.
pub fn read_value<T: DeserializeOwned>(value: &Value) -> Result<Received<T>, serde_json::Error> {
    let read = read(value, Rules::SentByNewer, |_| false);
    read.map(|(value, left_out, _)| Received { value, left_out })
        .map_err(serde_json::Error::custom)
}

/// What was read, what was left out, and unknown fields.
type Read<T> = (T, Vec<LeftOut>, Vec<(Vec<Step>, String)>);

/// Reads a value without what can't be read. Where something fails that is `needed`, all fails.
pub(crate) fn read<T: DeserializeOwned>(
    value: &Value,
    rules: Rules,
    needed: impl Fn(&str) -> bool,
) -> Result<Read<T>, LeftOut> {
    let mut left_out: Vec<LeftOut> = Vec::new();
    let mut rest = Cow::Borrowed(value);
    loop {
        let (result, findings) = decode::decode(&rest, &[], rules);
        let TypeError(mut problem) = match result {
            Ok(read) => return Ok((read, left_out, findings.unknown)),
            Err(error) => error,
        };
        // Advice to the author of a file, who is a program here.
        if let Some(end) = problem.rfind("; put it in quotes") {
            problem.truncate(end);
        }
        let mut at = findings.failed_at.unwrap_or_default();
        let mut failed = LeftOut {
            field: path::format(&at),
            problem,
        };
        if needed(&failed.field) {
            return Err(failed);
        }
        let above = left_out.len() / ONE_BY_ONE;
        at.truncate(at.len().saturating_sub(above));
        failed.field = path::format(&at);
        if needed(&failed.field) || !remove(rest.to_mut(), &at) {
            return Err(failed);
        }
        left_out.push(failed);
    }
}

/// Removes a part of a value; false if there is no such part.
fn remove(value: &mut Value, at: &[Step]) -> bool {
    let Some((last, above)) = at.split_last() else {
        return false;
    };
    let mut value = value;
    for step in above {
        let next = match step {
            Step::Key(key) => value.get_mut(key),
            Step::Index(index) => value.get_mut(index),
        };
        match next {
            Some(next) => value = next,
            None => return false,
        }
    }
    match (last, value) {
        (Step::Key(key), Value::Object(fields)) => fields.remove(key).is_some(),
        (Step::Index(index), Value::Array(items)) if *index < items.len() => {
            items.remove(*index);
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde_json::{json, value::RawValue};

    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Node {
        name: String,
        cordoned: bool,
        number: i32,
        ratio: f64,
        limit: Option<u16>,
        labels: BTreeMap<String, String>,
        images: Vec<Image>,
        port: Port,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Image {
        names: Vec<String>,
        size: u64,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Port {
        port: u16,
    }

    fn read_node(value: &Value) -> (Node, Vec<String>) {
        let read = read_json::<Node>(value.to_string().as_bytes()).unwrap();
        let left_out = read.left_out.iter().map(ToString::to_string).collect();
        (read.value, left_out)
    }

    #[test]
    fn null_is_empty_wherever_it_stands() {
        let nulls = json!({
            "name": null, "cordoned": null, "number": null, "ratio": null, "limit": null,
            "labels": null, "images": null, "port": null,
        });
        assert_eq!(read_node(&nulls), (Node::default(), vec![]));
        let (node, left_out) = read_node(&json!({
            "labels": {"a": null, "b": "x"},
            "images": [{"names": null, "size": 1}, null, {"names": ["a", null], "size": null}],
            "port": {"port": null},
        }));
        assert_eq!(left_out, [""; 0]);
        assert_eq!((&*node.labels["a"], &*node.labels["b"]), ("", "x"));
        assert_eq!(node.images.len(), 3, "as Go counts them");
        assert_eq!(node.images[2].names, ["a", ""]);
    }

    #[test]
    fn a_field_of_the_wrong_type_costs_that_field() {
        let (node, left_out) = read_node(&json!({
            "name": "a", "cordoned": "yes", "number": 1.5, "limit": 70000, "labels": {"a": 1, "b": "x"},
            "images": [{"names": "a", "size": 3}, 7, {"names": ["b"], "size": -1}],
            "port": [], "novelty": {"x": 1},
        }));
        assert_eq!(node.name, "a");
        assert_eq!(node.labels.len(), 1);
        assert_eq!(node.images[0].size, 3);
        assert_eq!(node.images[1].names, ["b"]);
        let mut fields: Vec<&str> = left_out
            .iter()
            .filter_map(|text| Some(text.split_once(": ")?.0))
            .collect();
        fields.sort_unstable();
        assert_eq!(
            fields,
            [
                "cordoned",
                "images[0].names",
                "images[1]",
                "images[1].size",
                "labels.a",
                "limit",
                "number",
                "port"
            ]
        );
        assert!(
            left_out.contains(&"cordoned: expected a boolean, found the string \"yes\"".to_owned()),
            "{left_out:?}"
        );
    }

    #[test]
    fn a_list_in_which_everything_is_wrong_is_left_out_after_a_few_tries() {
        let images: Vec<Value> = (0..1000)
            .map(|_| json!({"names": 1, "size": "x"}))
            .collect();
        let (node, left_out) = read_node(&json!({"name": "a", "images": images}));
        assert_eq!((node.name.as_str(), node.images.len()), ("a", 0));
        assert_eq!(left_out.len(), 2 * ONE_BY_ONE + 1);
        assert!(
            left_out[2 * ONE_BY_ONE].starts_with("images: "),
            "{left_out:?}"
        );
    }

    #[test]
    fn what_is_nothing_of_the_kind_is_refused() {
        for text in ["", "{", "1", "\"a\"", "{\"name\": }"] {
            assert!(read_json::<Node>(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn a_field_that_occurs_twice_counts_as_it_was_written_last() {
        let read = read_json::<Node>(br#"{"name": "a", "name": "b"}"#).unwrap();
        assert_eq!(read.value.name, "b");
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        let read = read_json::<Node>(b"{\"name\": \"a\xff\"}").unwrap();
        assert_eq!(read.value.name, "a\u{fffd}");
    }

    #[test]
    fn json_that_is_kept_as_it_is_stays_so() {
        #[derive(Deserialize)]
        struct Kept {
            #[serde(default)]
            list: Vec<String>,
            raw: Box<RawValue>,
        }
        let read = read_json::<Kept>(br#"{"list": null, "raw": {"b":[null,1.0]}}"#).unwrap();
        assert!(read.value.list.is_empty());
        assert_eq!(read.value.raw.get(), r#"{"b":[null,1.0]}"#);
    }
}
