//! Tests of `label`.

use serde_json::json;

use super::*;

#[test]
fn selectors_match_as_kubernetes_documents_them() {
    let labels = json!({ "app": "web", "tier": "front", "example.com/n": "5", "empty": "" });
    for (selector, matches) in [
        ("", true),
        ("app=web", true),
        ("app==web", true),
        (" app = web , tier = front ", true),
        ("app=web,tier=back", false),
        ("app!=web", false),
        ("absent!=web", true),
        ("app in (web, db)", true),
        ("app in (db)", false),
        ("app notin (db,cache)", true),
        ("absent notin (db)", true),
        ("absent in (db)", false),
        ("app", true),
        ("!app", false),
        ("!absent,app", true),
        ("example.com/n>4", true),
        ("example.com/n<4", false),
        ("example.com/n > -1", true),
        ("example.com/n > -9223372036854775808", true),
        ("app>1", false),
        ("empty=", true),
        ("app=", false),
        ("empty in (,x)", true),
    ] {
        let parsed = LabelSelector::parse(selector).expect(selector);
        assert_eq!(parsed.matches(&labels), matches, "{selector}");
    }
    assert!(
        LabelSelector::parse("!a")
            .expect("valid")
            .matches(&Value::Null)
    );
}

#[test]
fn broken_selectors_are_refused_with_the_place() {
    for selector in [
        "=",
        "a=b,",
        "a in b",
        "a in (b",
        "a b",
        "-a",
        "a=b c",
        "a>x",
        "a=-b",
        "/a",
        "a/b/c",
        "a>--5",
        "a>--9223372036854775808",
    ] {
        let error = LabelSelector::parse(selector).expect_err(selector);
        assert!(
            error.message.contains(&format!("{selector:?}")),
            "{}",
            error.message
        );
    }
    let error = LabelSelector::parse("app in web").expect_err("no parenthesis");
    assert_eq!(
        error.message,
        r#"unable to parse label selector "app in web": found "web", expected "(""#
    );
}
