//! Well-formed texts give the values that `sigs.k8s.io/yaml` gives.

use rubelet_yaml::documents;
use serde_json::{Value, json};

fn values(text: &str) -> Vec<Value> {
    documents(text)
        .expect("well-formed")
        .iter()
        .map(|document| document.value().clone())
        .collect()
}

#[test]
fn plain_scalars_get_the_type_kubernetes_gives_them() {
    for (scalar, value) in [
        ("yes", json!(true)),
        ("No", json!(false)),
        ("on", json!(true)),
        ("off", json!(false)),
        ("y", json!(true)),
        ("n", json!(false)),
        ("\"yes\"", json!("yes")),
        ("~", json!(null)),
        ("", json!(null)),
        ("0644", json!(420)),
        ("0o644", json!(420)),
        ("0x1f", json!(31)),
        ("1_000", json!(1000)),
        ("-7", json!(-7)),
        ("1.0", json!(1)),
        ("1e3", json!(1000)),
        ("1.5", json!(1.5)),
        ("18446744073709551615", json!(u64::MAX)),
        ("1Gi", json!("1Gi")),
        ("1:20", json!("1:20")),
        ("2001-01-01", json!("2001-01-01")),
        ("1.2.3", json!("1.2.3")),
        ("!custom x", json!("x")),
    ] {
        assert_eq!(
            values(&format!("v: {scalar}\n")),
            [json!({"v": value})],
            "{scalar}"
        );
    }
}

#[test]
fn field_names_are_strings() {
    assert_eq!(
        values("1: a\ntrue: b\n1.5: c\n"),
        [json!({"1": "a", "true": "b", "1.5": "c"})]
    );
}

#[test]
fn anchors_and_merge_keys_are_expanded() {
    assert_eq!(
        values("a: &x {p: 1, q: 2}\nb: *x\nc:\n  <<: *x\n  q: 3\n"),
        [json!({"a": {"p": 1, "q": 2}, "b": {"p": 1, "q": 2}, "c": {"p": 1, "q": 3}})]
    );
}

#[test]
fn documents_without_content_are_skipped() {
    for (text, count) in [
        ("", 0),
        ("\n\n# nothing\n", 0),
        ("---\n", 0),
        ("---\nnull\n---\n# x\n---\n~\n", 0),
        ("---\na: 1\n---\n---\nb: 1\n...\n", 2),
        ("hello", 1),
        ("{}", 1),
        ("\u{feff}a: 1\n", 1),
        ("%YAML 1.2\n---\na: 1\n", 1),
        ("a: 1\n...\nb: 2\n", 2),
    ] {
        assert_eq!(values(text).len(), count, "{text:?}");
    }
}

#[test]
fn indexes_count_documents_with_content() {
    let documents = documents("---\n---\na: 1\n---\nb: 1\n").unwrap();
    let indexes: Vec<usize> = documents.iter().map(|document| document.index()).collect();
    assert_eq!(indexes, [0, 1]);
    assert_eq!(documents[1].position_of("b").unwrap().line, 5);
}

#[test]
fn json_is_read_as_json() {
    assert_eq!(
        values("{\n\t\"a\": \"\\ud83d\\ude00\\/\",\n\t\"b\": [1,\n\t\t2.0]\n}\n"),
        [json!({"a": "😀/", "b": [1, 2]})]
    );
}

#[test]
fn a_number_is_the_same_in_yaml_and_in_json() {
    for number in [
        "1289742222222222222222222222222222222748",
        "1.2897422222222223e39",
        "0.30000000000000004",
        "2.2250738585072011e-308",
    ] {
        let exact: f64 = number.parse().unwrap();
        assert_eq!(values(&format!("a: {number}\n")), [json!({ "a": exact })]);
        assert_eq!(
            values(&format!("{{\"a\": {number}}}")),
            [json!({ "a": exact })]
        );
    }
}

#[test]
fn block_scalars_may_hold_anything_but_markers() {
    assert_eq!(
        values("a: |\n  #!/bin/sh\n  --- x\n   {{ y }}\nb: >-\n  one\n  two\n"),
        [json!({"a": "#!/bin/sh\n--- x\n {{ y }}\n", "b": "one two"})]
    );
}

#[test]
fn too_deep_nesting_is_refused_and_does_not_overflow() {
    let text = "[".repeat(100_000);
    assert!(documents(&text).is_err());
    let text = "- ".repeat(100_000);
    assert!(documents(&text).is_err());
}
