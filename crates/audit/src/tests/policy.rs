//! Which rule matches, and which policies are refused where.

use http::Method;
use rubelet_http_core::user::User;

use crate::{AuditLevel, AuditPolicy, RequestAttributes, ResourceRef, policy::OmittedStages};

fn policy(rules: &str) -> Result<AuditPolicy, String> {
    let text = format!("apiVersion: audit.k8s.io/v1\nkind: Policy\n{rules}");
    AuditPolicy::read("policy.yaml", &text).map_err(|error| error.to_string())
}

fn user(name: &str, groups: &[&str]) -> User {
    User {
        name: name.to_owned(),
        groups: groups.iter().map(ToString::to_string).collect(),
        ..User::default()
    }
}

/// A request on a sub-resource of a pod; empty for the pod itself.
fn pod(subresource: &'static str) -> RequestAttributes {
    RequestAttributes {
        verb: "get".to_owned(),
        resource: Some(ResourceRef {
            version: "v1",
            resource: "pods",
            subresource,
            namespace: "a".to_owned(),
            name: "b".to_owned(),
            ..ResourceRef::default()
        }),
        ..RequestAttributes::default()
    }
}

/// A list of all pods.
fn pods() -> RequestAttributes {
    RequestAttributes {
        verb: "list".to_owned(),
        resource: Some(ResourceRef {
            version: "v1",
            resource: "pods",
            ..ResourceRef::default()
        }),
        ..RequestAttributes::default()
    }
}

fn path(path: &str) -> RequestAttributes {
    RequestAttributes::of_path(&Method::GET, path)
}

fn node(subresource: &'static str) -> RequestAttributes {
    let uri = "/x".parse().unwrap();
    RequestAttributes::of_node(&Method::GET, "get", subresource, "n1", &uri)
}

#[test]
fn a_rule_matches_by_each_of_its_fields() {
    let ann = user("ann", &["dev", "ops"]);
    let log = || pod("log");
    let pod = || pod("");
    for (rule, request, matches) in [
        ("", pod(), true),
        ("users: [ann]", pod(), true),
        ("users: [bob]", pod(), false),
        ("userGroups: [ops]", pod(), true),
        ("userGroups: [others]", pod(), false),
        ("verbs: [get, list]", pod(), true),
        ("verbs: [list]", pod(), false),
        ("verbs: ['*']", pod(), false),
        ("namespaces: [a]", pod(), true),
        ("namespaces: [b]", pod(), false),
        ("namespaces: ['']", node("proxy"), true),
        ("resources: [{group: ''}]", pod(), true),
        ("resources: [{group: apps}]", pod(), false),
        ("resources: [{resources: [pods]}]", pod(), true),
        ("resources: [{resources: [pods]}]", log(), false),
        ("resources: [{resources: [pods/log]}]", log(), true),
        ("resources: [{resources: ['pods/*']}]", log(), true),
        ("resources: [{resources: ['pods/*']}]", pod(), true),
        ("resources: [{resources: ['*/log']}]", log(), true),
        ("resources: [{resources: ['*/log']}]", pod(), false),
        ("resources: [{resources: ['*']}]", log(), true),
        (
            "resources: [{resources: [pods], resourceNames: [b]}]",
            pod(),
            true,
        ),
        (
            "resources: [{resources: [pods], resourceNames: [c]}]",
            pod(),
            false,
        ),
        (
            "resources: [{resources: [nodes/proxy], resourceNames: [n1]}]",
            node("proxy"),
            true,
        ),
        (
            "resources: [{resources: [nodes/proxy]}]",
            node("metrics"),
            false,
        ),
        ("nonResourceURLs: [/healthz]", path("/healthz"), true),
        (
            "nonResourceURLs: ['/healthz*']",
            path("/healthz/ping"),
            true,
        ),
        ("nonResourceURLs: [/healthz]", path("/healthz/ping"), false),
        ("nonResourceURLs: ['*']", path("/x"), true),
        ("nonResourceURLs: ['*']", pod(), false),
        ("{users: [ann], verbs: [list]}", pod(), false),
    ] {
        let fields = rule.trim_start_matches('{').trim_end_matches('}');
        let fields = match (fields.is_empty(), rule.starts_with('{')) {
            (true, _) => String::new(),
            (false, true) => format!(", {fields}"),
            (false, false) => format!(", {rule}"),
        };
        let policy = policy(&format!("rules: [{{level: Metadata{fields}}}]")).unwrap();
        let (level, _) = policy.decide(Some(&ann), &request);
        assert_eq!(level == AuditLevel::Metadata, matches, "{rule} {request:?}");
        if rule.contains("user") {
            assert_eq!(policy.decide(None, &request).0, AuditLevel::None, "{rule}");
        }
    }
}

#[test]
fn the_first_rule_counts_and_no_rule_means_none() {
    let rules = "omitStages: [RequestReceived]\nrules:\n\
                 - {level: None, users: [ann], verbs: [get]}\n\
                 - {level: Metadata, userGroups: [dev], omitStages: [ResponseStarted]}\n";
    let policy = policy(rules).unwrap();
    let (get, list) = (path("/healthz"), pods());
    let ann = user("ann", &["dev"]);
    assert_eq!(policy.decide(Some(&ann), &get).0, AuditLevel::None);
    let omitted = OmittedStages {
        response_started: true,
        response_complete: false,
    };
    assert_eq!(
        policy.decide(Some(&ann), &list),
        (AuditLevel::Metadata, omitted)
    );
    let bob = user("bob", &[]);
    assert_eq!(policy.decide(Some(&bob), &list).0, AuditLevel::None);
}

#[test]
fn a_level_alone_is_a_policy() {
    let request = path("/healthz");
    for level in [AuditLevel::None, AuditLevel::Metadata] {
        let policy = AuditPolicy::of_level(level);
        assert_eq!(policy.decide(None, &request).0, level);
    }
}

#[test]
fn a_policy_that_is_wrong_is_refused_with_file_line_and_field() {
    for (rules, message) in [
        (
            "rules:\n- verbs: [get]\n",
            "policy.yaml:4:3: rules[0].level: is missing; write None or Metadata",
        ),
        (
            "rules:\n- level: None\n- level: Request\n",
            "policy.yaml:5:3: rules[1].level: must be None or Metadata, is \"Request\": bodies are never recorded",
        ),
        (
            "rules:\n- level: metadata\n",
            "policy.yaml:4:3: rules[0].level: must be None or Metadata, is \"metadata\"",
        ),
        (
            "rules:\n- level: None\n  user: [a]\n",
            "policy.yaml:5:3: rules[0].user: unknown field; did you mean \"users\"?",
        ),
        (
            "omitStages: [Never]\nrules: []\n",
            "policy.yaml:3:14: omitStages[0]: must be one of RequestReceived, ResponseStarted, ResponseComplete, Panic, is \"Never\"",
        ),
        (
            "rules:\n- {level: None, nonResourceURLs: [/x], namespaces: [a]}\n",
            "policy.yaml:4:17: rules[0].nonResourceURLs: a rule cannot be about both resources and other paths; write two rules",
        ),
        (
            "rules:\n- level: None\n  nonResourceURLs: ['/a*b']\n",
            "policy.yaml:5:21: rules[0].nonResourceURLs[0]: must begin with / and have * at its end only, is \"/a*b\"",
        ),
        (
            "rules:\n- level: None\n  resources:\n  - group: apps/v1\n",
            "policy.yaml:6:5: rules[0].resources[0].group: must be an API group without a version, is \"apps/v1\"",
        ),
        (
            "rules:\n- level: None\n  resources:\n  - resourceNames: [a]\n",
            "policy.yaml:6:5: rules[0].resources[0].resourceNames: needs at least one resource beside it",
        ),
    ] {
        assert_eq!(policy(rules).unwrap_err(), message);
    }
    let read = |text| AuditPolicy::read("p", text).map_err(|error| error.to_string());
    assert_eq!(
        read("").unwrap_err(),
        "p: must hold one document with kind: Policy, holds 0"
    );
    assert!(
        read("apiVersion: audit.k8s.io/v1beta1\nkind: Policy\n")
            .unwrap_err()
            .starts_with("p:1:1: apiVersion: must be")
    );
    assert!(
        read("apiVersion: audit.k8s.io/v1\nkind: Pod\n")
            .unwrap_err()
            .contains("kind: must be \"Policy\"")
    );
}
