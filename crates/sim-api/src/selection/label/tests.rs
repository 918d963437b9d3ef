//! Tests of `label`.

use serde_json::json;

use super::*;

#[test]
fn requirements_are_evaluated_as_documented() {
    let object = json!({ "metadata": { "labels": {
        "app": "web", "tier": "front", "example.com/n": "5", "empty": "", "in": "in",
    } } });
    for (selector, wanted) in [
        ("", true),
        (" app = web , tier==front ", true),
        ("app=web,tier=back", false),
        ("app!=web", false),
        ("absent!=web", true),
        ("app in (web, db)", true),
        ("app in (db)", false),
        ("app in ()", false),
        ("empty in ()", true),
        ("empty in (x,)", true),
        ("empty in (,x)", true),
        ("empty in (x,,y)", true),
        ("app notin (db,cache)", true),
        ("absent notin (db)", true),
        ("absent in (db)", false),
        ("in in (in,notin)", true),
        ("in=in", true),
        ("!app", false),
        ("! absent,app", true),
        ("example.com/n>4,example.com/n<6", true),
        ("app>1", false),
        ("empty=", true),
        ("empty=,app", true),
        ("app=", false),
    ] {
        let parsed = LabelSelector::parse(selector).expect(selector);
        assert_eq!(parsed.matches(&object), wanted, "{selector}");
    }
    let absent = LabelSelector::parse("!a").unwrap();
    assert!(absent.matches(&json!({ "metadata": {} })));
}

#[test]
fn an_invalid_selector_is_refused_in_upstreams_words() {
    for (selector, message) in [
        (
            "=",
            "found '=', expected: !, identifier, or 'end of string'",
        ),
        ("a=b,", "found '', expected: identifier after ','"),
        ("a=b,,c", "found ',', expected: identifier after ','"),
        (
            "a in b",
            "unable to parse requirement: found 'b' expected: '('",
        ),
        (
            "a in (b",
            "unable to parse requirement: found '', expected: ',' or ')'",
        ),
        (
            "a in (b c)",
            "unable to parse requirement: found 'c', expected: ',' or ')'",
        ),
        (
            "a b",
            "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
        ),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        (
            "!=b",
            "found '!=', expected: !, identifier, or 'end of string'",
        ),
        (
            "a=(b)",
            "unable to parse requirement: found '(', expected: identifier",
        ),
    ] {
        let error = LabelSelector::parse(selector).unwrap_err();
        assert_eq!(error, message, "{selector}");
    }
    for selector in ["-a", "a=-b", "/a", "a/b/c", "A_b/c", "a>x", "a>-5"] {
        let error = LabelSelector::parse(selector).unwrap_err();
        assert!(error.contains("Invalid value"), "{selector}: {error}");
    }
}
