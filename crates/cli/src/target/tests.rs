//! Tests of `target`.

use serde_json::json;

use super::*;

#[test]
fn every_way_to_name_a_resource_is_understood() {
    for (resource, name, expected) in [
        ("pods", None, (Resource::Pods, None)),
        ("po", Some("web"), (Resource::Pods, Some("web"))),
        ("pod/web", None, (Resource::Pods, Some("web"))),
        ("pod", Some("pods/web"), (Resource::Pods, Some("web"))),
        (
            "mf",
            Some("a/b.yaml"),
            (Resource::Manifests, Some("a/b.yaml")),
        ),
        ("ev", None, (Resource::Events, None)),
    ] {
        let parsed = parse(resource, name).expect(resource);
        assert_eq!(parsed, (expected.0, expected.1.map(str::to_owned)));
    }
    for (resource, name) in [
        ("nodes", None),
        ("pod/web", Some("db")),
        ("pod/", None),
        ("pod", Some("event/x")),
        ("pod", Some("")),
    ] {
        assert!(
            matches!(parse(resource, name), Err(CommandError::Usage(_))),
            "{resource} {name:?}"
        );
    }
}

#[test]
fn several_names_are_of_one_kind_and_in_one_form() {
    let parsed = |resource: &str, names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        parse_several(resource, &names).map(|(_, names)| names)
    };
    for (resource, names, expected) in [
        ("pods", &[] as &[&str], &[] as &[&str]),
        ("pods", &["web", "db"], &["web", "db"]),
        ("pod/web", &["po/db"], &["web", "db"]),
        ("mf", &["a/b.yaml", "c.yaml"], &["a/b.yaml", "c.yaml"]),
    ] {
        assert_eq!(parsed(resource, names).expect(resource), expected);
    }
    for (resource, names) in [
        ("pod/web", &["db"] as &[&str]),
        ("pods", &["web", "event/x"]),
        ("pods", &["web", ""]),
    ] {
        assert!(
            matches!(parsed(resource, names), Err(CommandError::Usage(_))),
            "{resource} {names:?}"
        );
    }
}

#[test]
fn a_pod_is_named_in_one_word_or_two() {
    let named = |words: &[&str]| {
        let pod = words.iter().map(|word| (*word).to_owned()).collect();
        PodArg { pod }.name().map(str::to_owned)
    };
    for words in [
        &["web"] as &[&str],
        &["pod/web"],
        &["pods/web"],
        &["po/web"],
        &["pod", "web"],
        &["pods", "pod/web"],
    ] {
        assert_eq!(named(words).expect("a name"), "web", "{words:?}");
    }
    for words in [
        &["pod/"] as &[&str],
        &["event/x"],
        &["event", "x"],
        &["web", "db"],
        &["pod", ""],
    ] {
        assert!(
            matches!(named(words), Err(CommandError::Usage(_))),
            "{words:?}"
        );
    }
}

#[test]
fn names_are_completed_when_only_one_fits() {
    let pod = |name: &str| {
        json!({ "metadata": { "name": name, "namespace": "default" },
                "spec": { "nodeName": "n1" } })
    };
    let pods = ["web-n1", "web2-n1", "web2-canary-n1", "db-n1", "db-n1-x"].map(pod);
    let found = |wanted: &str| pick(Resource::Pods, &pods, wanted).map(|p| p.map(name_of));
    for (wanted, name) in [
        ("web-n1", Some("web-n1")),
        ("web", Some("web-n1")),
        ("web2", Some("web2-n1")),
        ("web2-c", Some("web2-canary-n1")),
        ("db-n1", Some("db-n1")),
        ("x", None),
    ] {
        assert_eq!(found(wanted).expect(wanted), name);
    }
    let manifests = ["/m/web.yaml", "/m/db.yaml"];
    let manifests = manifests.map(|name| json!({ "metadata": { "name": name } }));
    for wanted in ["/m/web.yaml", "web.yaml", "web", "/m/w"] {
        let found = pick(Resource::Manifests, &manifests, wanted).expect(wanted);
        assert_eq!(found.map(name_of), Some("/m/web.yaml"), "{wanted}");
    }
    assert_eq!(
        found("we").expect_err("several").to_string(),
        r#"pod "we" is ambiguous; it may be web-n1, web2-n1, web2-canary-n1"#
    );
}
