//! Tests of `sort`.

use serde_json::json;

use super::*;

#[test]
fn paths_are_read_as_people_write_them() {
    for (text, pointer) in [
        (".metadata.name", "/metadata/name"),
        ("metadata.name", "/metadata/name"),
        (
            "{.status.containerStatuses[0].restartCount}",
            "/status/containerStatuses/0/restartCount",
        ),
        ("$.metadata.labels['a.b/c']", "/metadata/labels/a.b~1c"),
    ] {
        assert_eq!(SortKey::parse(text).expect(text).pointer, pointer);
    }
    for text in [
        "",
        "{}",
        ".",
        "a..b",
        "a[x]",
        "a[0",
        "a[*]",
        "{.items[?(@.a)]}",
    ] {
        assert!(
            matches!(SortKey::parse(text), Err(CommandError::Usage(_))),
            "{text}"
        );
    }
}

#[test]
fn numbers_count_as_numbers_and_the_missing_come_first() {
    let mut items = ["web-10", "web-9", "db", "web-09x"].map(|name| json!({ "name": name }));
    SortKey::parse("name")
        .expect("valid")
        .sort(&mut items)
        .expect("found");
    let names: Vec<_> = items
        .iter()
        .map(|item| item["name"].as_str().expect("text"))
        .collect();
    assert_eq!(names, ["db", "web-9", "web-09x", "web-10"]);

    let mut items = [json!({ "n": 10 }), json!({ "n": 9 }), json!({})];
    SortKey::parse(".n")
        .expect("valid")
        .sort(&mut items)
        .expect("found");
    assert_eq!(items, [json!({}), json!({ "n": 9 }), json!({ "n": 10 })]);
    assert!(
        SortKey::parse(".m")
            .expect("valid")
            .sort(&mut items)
            .is_err()
    );
}
