//! Every mistake is reported at the line, column and field where it was made.

use rubelet_yaml::{DecodeError, Position, documents};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Debug, Deserialize, PartialEq, Default)]
#[serde(rename_all = "camelCase", default)]
struct Pod {
    kind: String,
    metadata: Metadata,
    spec: Spec,
}

#[derive(Debug, Deserialize, PartialEq, Default)]
#[serde(default)]
struct Metadata {
    name: String,
    labels: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize, PartialEq, Default)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    containers: Vec<Container>,
    host_network: Option<bool>,
    policy: Option<Policy>,
}

#[derive(Debug, Deserialize, PartialEq)]
enum Policy {
    Always,
    Never,
}

#[derive(Debug, Deserialize, PartialEq)]
struct Container {
    name: String,
    #[serde(default)]
    image: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    ports: Vec<u16>,
}

fn first_error(text: &str) -> DecodeError {
    match documents(text) {
        Err(error) => error,
        Ok(documents) => {
            let error = documents
                .iter()
                .find_map(|document| document.decode_strict::<Pod>().err());
            *error.unwrap_or_else(|| panic!("no error in {text:?}"))
        }
    }
}

struct Case {
    what: &'static str,
    text: &'static str,
    document: usize,
    position: (usize, usize),
    field: Option<&'static str>,
    message: &'static str,
}

const CASES: &[Case] = &[
    Case {
        what: "tab in a block mapping",
        text: "kind: Pod\n\tmetadata: {}\n",
        document: 0,
        position: (2, 1),
        field: None,
        message: "tab in the indentation; YAML is indented with spaces",
    },
    Case {
        what: "tab in a block list",
        text: "spec:\n  containers:\n  \t- name: a\n",
        document: 0,
        position: (3, 3),
        field: None,
        message: "tab in the indentation; YAML is indented with spaces",
    },
    Case {
        what: "file cut off in a field name",
        text: "kind: Pod\nspec:\n  containers:\n  - name: a\n    image",
        document: 0,
        position: (5, 5),
        field: None,
        message: "simple key expected ':'",
    },
    Case {
        what: "file cut off in a quoted string",
        text: "kind: Pod\nmetadata:\n  name: \"a",
        document: 0,
        position: (3, 9),
        field: None,
        message: "unclosed quote",
    },
    Case {
        what: "file cut off in a flow list",
        text: "kind: Pod\nspec: {containers: [\n",
        document: 0,
        position: (2, 20),
        field: None,
        message: "unclosed bracket '['",
    },
    Case {
        what: "JSON cut off",
        text: "{\"kind\": \"Pod\",\n \"metadata\": {",
        document: 0,
        position: (2, 14),
        field: None,
        message: "unclosed bracket '{'",
    },
    Case {
        what: "wrong indentation",
        text: "metadata:\n  name: a\n labels: {}\n",
        document: 0,
        position: (3, 2),
        field: None,
        message: "while parsing a block mapping, did not find expected key; is this line indented as those that belong with it are?",
    },
    Case {
        what: "number for a string",
        text: "kind: Pod\nmetadata:\n  labels:\n    a.b/c: 12\n",
        document: 0,
        position: (4, 12),
        field: Some("metadata.labels[a.b/c]"),
        message: "expected a string, found the number 12; put it in quotes",
    },
    Case {
        what: "boolean for a string",
        text: "kind: Pod\nspec:\n  containers:\n  - name: a\n    args: [-v, yes]\n",
        document: 0,
        position: (5, 16),
        field: Some("spec.containers[0].args[1]"),
        message: "expected a string, found the boolean true; put it in quotes",
    },
    Case {
        what: "string for a boolean",
        text: "spec:\n  hostNetwork: maybe\n",
        document: 0,
        position: (2, 16),
        field: Some("spec.hostNetwork"),
        message: "expected a boolean, found the string \"maybe\"",
    },
    Case {
        what: "mapping for a list",
        text: "spec:\n  containers:\n    name: a\n",
        document: 0,
        position: (3, 5),
        field: Some("spec.containers"),
        message: "expected a list, found a mapping",
    },
    Case {
        what: "list for a mapping",
        text: "metadata:\n- name: a\n",
        document: 0,
        position: (2, 3),
        field: Some("metadata"),
        message: "expected a mapping (Metadata), found a list",
    },
    Case {
        what: "number out of range",
        text: "spec:\n  containers:\n  - name: a\n    ports:\n    - 80\n    - 70000\n",
        document: 0,
        position: (6, 7),
        field: Some("spec.containers[0].ports[1]"),
        message: "expected a whole number from 0 to 65535, found the number 70000",
    },
    Case {
        what: "unknown value of an enumeration",
        text: "spec: {policy: Sometimes}",
        document: 0,
        position: (1, 16),
        field: Some("spec.policy"),
        message: "unknown value \"Sometimes\"; allowed are Always, Never",
    },
    Case {
        what: "missing field",
        text: "spec:\n  containers:\n  - name: a\n  - image: b\n",
        document: 0,
        position: (4, 5),
        field: Some("spec.containers[1]"),
        message: "missing field \"name\"",
    },
    Case {
        what: "unknown nested field in the second document",
        text: "kind: Pod\n---\n# web\nspec:\n  containers:\n  - name: a\n    imagee: x\n",
        document: 1,
        position: (7, 5),
        field: Some("spec.containers[0].imagee"),
        message: "unknown field; did you mean \"image\"?",
    },
    Case {
        what: "unknown field in JSON after wide characters",
        text: "{\"kind\": \"Pöd ☸\", \"sped\": {}}",
        document: 0,
        position: (1, 19),
        field: Some("sped"),
        message: "unknown field; did you mean \"spec\"?",
    },
    Case {
        what: "duplicate field",
        text: "kind: Pod\nspec:\n  containers:\n  - name: a\n    image: b\n    name: c\n",
        document: 0,
        position: (6, 5),
        field: Some("spec.containers[0].name"),
        message: "field is given twice",
    },
    Case {
        what: "duplicate field in JSON",
        text: "{\"kind\": \"Pod\",\n \"kind\": \"Pod\"}",
        document: 0,
        position: (2, 2),
        field: Some("kind"),
        message: "field is given twice",
    },
    Case {
        what: "alias bomb",
        text: "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n\
               d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e]\n",
        document: 0,
        position: (5, 20),
        field: Some("e[4][8][6][8][3]"),
        message: "aliases expand to more than 50000 parts",
    },
    Case {
        what: "alias without anchor",
        text: "metadata:\n  name: *.example.org\n",
        document: 0,
        position: (2, 9),
        field: Some("metadata.name"),
        message: "alias without anchor; put a value that begins with * in quotes",
    },
    Case {
        what: "template left in the file",
        text: "metadata:\n  name: {{ name }}\n",
        document: 0,
        position: (2, 10),
        field: Some("metadata.name"),
        message: "a field name must be a string; put a value that begins with { or [ in quotes",
    },
    Case {
        what: "zero bytes after a crash",
        text: "kind: Pod\nmeta\0\0\0\0",
        document: 0,
        position: (2, 5),
        field: None,
        message: "control character U+0000; the file is damaged or not text",
    },
    Case {
        what: "scalar document",
        text: "\nhello\n",
        document: 0,
        position: (2, 1),
        field: None,
        message: "expected a mapping (Pod), found the string \"hello\"",
    },
    Case {
        what: "list document",
        text: "- kind: Pod\n",
        document: 0,
        position: (1, 1),
        field: None,
        message: "expected a mapping (Pod), found a list",
    },
    Case {
        what: "infinity",
        text: "spec:\n  hostNetwork: .inf\n",
        document: 0,
        position: (2, 16),
        field: Some("spec.hostNetwork"),
        message: "infinity and NaN are not allowed",
    },
];

#[test]
fn a_mistake_is_reported_where_it_is() {
    for case in CASES {
        let error = first_error(case.text);
        let found = (
            error.document,
            error.position,
            error.field.as_deref(),
            error.message.as_str(),
        );
        let position = Position {
            line: case.position.0,
            column: case.position.1,
        };
        let expected = (case.document, Some(position), case.field, case.message);
        assert_eq!(found, expected, "{}", case.what);
        let snippet = error
            .snippet
            .unwrap_or_else(|| panic!("{}: no snippet", case.what));
        assert!(snippet.ends_with('^'), "{}: {snippet}", case.what);
    }
}

#[test]
fn an_error_reads_as_one_line() {
    let error = first_error("kind: Pod\nspec:\n  containers:\n  - name: a\n    imagee: x\n");
    assert_eq!(
        error.to_string(),
        "line 5, column 5: spec.containers[0].imagee: unknown field; did you mean \"image\"?"
    );
    assert_eq!(
        error.snippet.unwrap(),
        "4 |   - name: a\n5 |     imagee: x\n  |     ^"
    );
}

#[test]
fn every_unknown_field_is_listed() {
    let documents =
        documents("kind: Pod\nextra: 1\nspec:\n  more: {a: 1}\n  hostNetwork: null\n").unwrap();
    let decoded = documents[0].decode::<Pod>().unwrap();
    let unknown: Vec<String> = decoded.unknown.iter().map(ToString::to_string).collect();
    assert_eq!(
        unknown,
        [
            "line 2, column 1: extra: unknown field",
            "line 4, column 3: spec.more: unknown field"
        ]
    );
    assert_eq!(decoded.value.spec.host_network, None);
}

#[test]
fn a_part_keeps_the_positions_of_the_document() {
    let text = "---\nkind: List\nitems:\n- kind: Pod\n- kind: Pod\n  sepc: {}\n- 7\n";
    let document = documents(text).unwrap().remove(0);
    assert_eq!(
        document.decode_at::<Pod>("items[0]").unwrap().value.kind,
        "Pod"
    );
    let second = document.decode_at::<Pod>("items[1]").unwrap();
    assert_eq!(
        second.unknown[0].to_string(),
        "line 6, column 3: items[1].sepc: unknown field; did you mean \"spec\"?"
    );
    assert_eq!(
        document
            .decode_at::<Pod>("items[2]")
            .unwrap_err()
            .to_string(),
        "line 7, column 3: items[2]: expected a mapping (Pod), found the number 7"
    );
    assert_eq!(
        document
            .decode_at::<Pod>("items[3]")
            .unwrap_err()
            .to_string(),
        "line 3, column 1: items[3]: missing"
    );
}

#[test]
fn an_error_found_later_still_has_its_position() {
    let text = "# first\nbase: &b\n  x: 1\nspec:\n  <<: *b\n  list:\n  - a\n  -\n    k: v\n  labels: {a.b/c: d}\n";
    let document = documents(text).unwrap().remove(0);
    let positions: Vec<Option<(usize, usize)>> = [
        "spec.list[0]",
        "spec.list[1].k",
        "spec.list[7].k",
        "spec.x",
        "spec.labels[a.b/c]",
        "spec.none.deep",
        "nothing",
    ]
    .iter()
    .map(|path| {
        document
            .position_of(path)
            .map(|position| (position.line, position.column))
    })
    .collect();
    assert_eq!(
        positions,
        [
            Some((7, 5)),
            Some((9, 5)),
            Some((6, 3)),
            Some((5, 7)),
            Some((10, 12)),
            Some((4, 1)),
            Some((2, 1))
        ]
    );
    let error = document.error_at("spec.list[0]", "must not be a");
    assert_eq!(
        error.to_string(),
        "line 7, column 5: spec.list[0]: must not be a"
    );
}
