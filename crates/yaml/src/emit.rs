//! Serializes values to YAML in kubectl's layout: two spaces, lists not indented below their field.

use crate::parse;
use serde_json::Value;
use std::fmt::Write as _;

/// Serializes `value` as one YAML document with a trailing line feed. Parsed by
/// [`documents`](crate::documents) it is the same value.
#[must_use]
pub fn to_yaml(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(map) if !map.is_empty() => fields(&mut out, map, 0, false),
        Value::Array(items) if !items.is_empty() => list(&mut out, items, 0, false),
        scalar => {
            push_scalar(&mut out, scalar, 0);
            out.push('\n');
        }
    }
    out
}

/// `inline` means that the first line's indentation is written already, as after `- `.
fn fields(out: &mut String, map: &serde_json::Map<String, Value>, indent: usize, inline: bool) {
    for (index, (key, value)) in map.iter().enumerate() {
        if index > 0 || !inline {
            pad(out, indent);
        }
        push_text(out, key);
        out.push(':');
        match value {
            Value::Object(map) if !map.is_empty() => {
                out.push('\n');
                fields(out, map, indent + 2, false);
            }
            Value::Array(items) if !items.is_empty() => {
                out.push('\n');
                list(out, items, indent, false);
            }
            scalar => {
                out.push(' ');
                push_scalar(out, scalar, indent + 2);
                out.push('\n');
            }
        }
    }
}

fn list(out: &mut String, items: &[Value], indent: usize, inline: bool) {
    for (index, item) in items.iter().enumerate() {
        if index > 0 || !inline {
            pad(out, indent);
        }
        out.push_str("- ");
        match item {
            Value::Object(map) if !map.is_empty() => fields(out, map, indent + 2, true),
            Value::Array(items) if !items.is_empty() => list(out, items, indent + 2, true),
            scalar => {
                push_scalar(out, scalar, indent + 2);
                out.push('\n');
            }
        }
    }
}

fn pad(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}

fn push_scalar(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::String(text) if is_block(text) => push_block(out, text, indent),
        Value::String(text) => push_text(out, text),
        Value::Object(_) => out.push_str("{}"),
        Value::Array(_) => out.push_str("[]"),
        other => write!(out, "{other}").expect("a String takes any text"),
    }
}

/// Several lines of ordinary text; the first must not begin with a space, because the block's
/// indentation is derived from it.
fn is_block(text: &str) -> bool {
    text.contains('\n')
        && !text.starts_with([' ', '\n', '\t'])
        && !text.contains(|c: char| c != '\n' && needs_escape(c))
}

fn push_block(out: &mut String, text: &str, indent: usize) {
    let body = text.trim_end_matches('\n');
    out.push_str(match text.len() - body.len() {
        0 => "|-",
        1 => "|",
        _ => "|+",
    });
    let lines = text.strip_suffix('\n').unwrap_or(text);
    for line in lines.split('\n') {
        out.push('\n');
        if !line.is_empty() {
            pad(out, indent.max(2));
            out.push_str(line);
        }
    }
}

fn push_text(out: &mut String, text: &str) {
    if is_plain(text) {
        out.push_str(text);
        return;
    }
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if needs_escape(c) => {
                write!(out, "\\u{:04x}", u32::from(c)).expect("a String takes any text");
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

fn needs_escape(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
        )
}

/// Whether the unquoted text is parsed as itself. Uses the parser, so that reader and writer can't
/// disagree; text that older parsers interpret as a date or a base 60 number is quoted too.
fn is_plain(text: &str) -> bool {
    let like_a_date = text.starts_with(|c: char| c.is_ascii_digit())
        && text
            .chars()
            .all(|c| c.is_ascii_digit() || ":-+.TZtz ".contains(c))
        && text.contains([':', '-']);
    let plain_start = text.starts_with(|c: char| c.is_ascii_alphanumeric() || "/._-".contains(c));
    let marker = text.starts_with("---") || text.starts_with("...");
    if !plain_start || marker || like_a_date || text.contains(needs_escape) {
        return false;
    }
    parse::value(&format!("{text}: {text}\n")).is_ok_and(|value| {
        value.as_object().is_some_and(|map| {
            map.len() == 1 && map.get(text).and_then(Value::as_str) == Some(text)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::to_yaml;
    use serde_json::json;

    #[test]
    fn the_layout_is_kubectls() {
        let value = json!({
            "kind": "Pod",
            "metadata": {"labels": {"a.b/c": "1"}, "name": "web"},
            "spec": {
                "containers": [{"args": ["-c", "a: b", "yes"], "image": "nginx:1.27", "ports": []}],
                "lists": [[1, [2]], {}, null],
                "script": "#!/bin/sh\n\necho 1\n",
                "tail": "a\nb",
            },
            "status": {"hostIP": "10.0.0.1", "startTime": "2026-01-01T00:00:00Z", "size": "1Gi"},
        });
        assert_eq!(
            to_yaml(&value),
            r##"kind: Pod
metadata:
  labels:
    a.b/c: "1"
  name: web
spec:
  containers:
  - args:
    - -c
    - "a: b"
    - "yes"
    image: nginx:1.27
    ports: []
  lists:
  - - 1
    - - 2
  - {}
  - null
  script: |
    #!/bin/sh

    echo 1
  tail: |-
    a
    b
status:
  hostIP: 10.0.0.1
  size: 1Gi
  startTime: "2026-01-01T00:00:00Z"
"##
        );
    }
}
