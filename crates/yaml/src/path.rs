//! Paths of fields, in Kubernetes' notation: `spec.containers[0].image`,
//! `metadata.labels[app.kubernetes.io/name]`.

use std::fmt::Write as _;

/// One step from a value to a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A field of a mapping, or in brackets any key.
    Key(String),
    /// An item of a list.
    Index(usize),
}

/// Writes `steps` in the notation of this module.
pub(crate) fn format(steps: &[Step]) -> String {
    let mut text = String::new();
    for step in steps {
        match step {
            Step::Index(index) => write!(text, "[{index}]").expect("a String takes any text"),
            Step::Key(key) if is_plain(key) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(key);
            }
            Step::Key(key) => write!(text, "[{key}]").expect("a String takes any text"),
        }
    }
    text
}

/// The path of the field `key` of the mapping at `parent`: `a` and `b` make `a.b`, `a` and `b.c`
/// make `a[b.c]`.
#[must_use]
pub fn join_path(parent: &str, key: &str) -> String {
    if !is_plain(key) {
        return std::format!("{parent}[{key}]");
    }
    match parent {
        "" => key.to_owned(),
        parent => std::format!("{parent}.{key}"),
    }
}

fn is_plain(key: &str) -> bool {
    !key.is_empty()
        && key
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '$'))
}

/// Parses the notation of this module. A number in brackets is an index; in a mapping it is looked
/// up as a key nevertheless.
pub(crate) fn parse(path: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let end = inner.find(']').unwrap_or(inner.len());
            let name = &inner[..end];
            steps.push(match name.parse() {
                Ok(index) => Step::Index(index),
                Err(_) => Step::Key(name.to_owned()),
            });
            rest = inner[end..].strip_prefix(']').unwrap_or("");
        } else {
            let body = rest.strip_prefix('.').unwrap_or(rest);
            let end = body.find(['.', '[']).unwrap_or(body.len());
            if end > 0 {
                steps.push(Step::Key(body[..end].to_owned()));
            }
            rest = &body[end..];
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::{Step, format, parse};

    #[test]
    fn a_path_is_read_back_as_it_was_written() {
        for path in [
            "",
            "spec",
            "spec.containers[0].image",
            "metadata.labels[app.kubernetes.io/name]",
            "items[3].spec.volumes[1].hostPath",
            "[2].kind",
        ] {
            assert_eq!(format(&parse(path)), path);
        }
    }

    #[test]
    fn brackets_hold_an_index_or_a_key() {
        let steps = parse("a[1][b.c]");
        let expected = [
            Step::Key("a".into()),
            Step::Index(1),
            Step::Key("b.c".into()),
        ];
        assert_eq!(steps, expected);
    }
}
