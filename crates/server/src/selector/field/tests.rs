//! Tests of `field`.

use serde_json::json;

use super::*;

#[test]
fn fields_of_pods_and_events_can_be_selected() {
    let pod = json!({
        "metadata": { "name": "web", "namespace": "default" },
        "spec": { "nodeName": "n1" },
        "status": { "phase": "Running" },
    });
    for (selector, matches) in [
        ("", true),
        ("metadata.name=web", true),
        ("metadata.name==web,status.phase!=Failed", true),
        ("metadata.name!=web", false),
        ("metadata.namespace=kube-system", false),
        ("status.phase=Failed", false),
        ("spec.nodeName!=n1", false),
        ("spec.hostNetwork=false", true),
        ("status.podIP=", true),
    ] {
        let parsed = FieldSelector::parse(Resource::Pods, selector).expect(selector);
        let object = Object::new("default", "web", || json!({}));
        assert_eq!(
            parsed.names(&object) && parsed.matches(&pod),
            matches,
            "{selector}"
        );
    }
    let event = json!({
        "involvedObject": { "kind": "Pod", "name": "a,b=c" },
        "reportingComponent": "kubelet",
    });
    for selector in [
        "involvedObject.kind=Pod,source=kubelet",
        r"involvedObject.name=a\,b\=c",
    ] {
        let parsed = FieldSelector::parse(Resource::Events, selector).expect(selector);
        assert!(parsed.matches(&event), "{selector}");
    }
}

#[test]
fn unknown_fields_and_broken_terms_are_refused() {
    for (selector, why) in [
        ("spec.image=x", "field label not supported: spec.image"),
        (
            "involvedObject.kind=Pod",
            "field label not supported: involvedObject.kind",
        ),
        ("metadata.name", "invalid selector"),
        (r"metadata.name=a\b", "invalid escape sequence"),
        ("metadata.name=a=b", "invalid escape sequence"),
    ] {
        let error = FieldSelector::parse(Resource::Pods, selector).expect_err(selector);
        assert!(error.message.contains(why), "{}", error.message);
    }
}
