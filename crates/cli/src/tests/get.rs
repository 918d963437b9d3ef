//! `rubelet get`: tables, documents, names, and what is said when nothing fits.

use rubelet_server::Resource;
use serde_json::{Value, json};

use super::fixture::{Screens, TestAgent, ago, crashing_pod, event, pod, type_words};

fn agent() -> TestAgent {
    let agent = TestAgent::start();
    agent
        .node
        .put(Resource::Pods, pod("default", "web-n1", "web"));
    agent
        .node
        .put(Resource::Pods, crashing_pod("default", "worker-n1"));
    agent
        .node
        .put(Resource::Pods, pod("kube-system", "dns-n1", "dns"));
    agent
}

#[test]
fn pods_are_a_table() {
    let agent = agent();
    assert_eq!(
        agent.type_in("get pods").data(),
        "\
NAME        READY   STATUS             RESTARTS     AGE
web-n1      1/1     Running            0            3d5h
worker-n1   0/1     CrashLoopBackOff   2 (9h ago)   3d5h
"
    );
    assert_eq!(
        agent.type_in("get po -A -o wide --no-headers").data(),
        "\
default       web-n1      1/1   Running            0            3d5h   10.0.0.7   n1   <none>   <none>
default       worker-n1   0/1   CrashLoopBackOff   2 (9h ago)   3d5h   10.0.0.7   n1   <none>   <none>
kube-system   dns-n1      1/1   Running            0            3d5h   10.0.0.7   n1   <none>   <none>
"
    );
    assert_eq!(
        agent.type_in("get pods -o name").data(),
        "pod/web-n1\npod/worker-n1\n"
    );
}

#[test]
fn manifests_and_events_are_tables_too() {
    let agent = agent();
    let manifest = |name: &str, status: Value| {
        json!({ "metadata": { "name": name }, "spec": { "path": format!("/m/{name}") },
                "status": status })
    };
    let good = json!({ "state": "Ok", "pods": [{ "namespace": "default", "name": "web-n1" }],
                       "lastGoodTime": ago(9) });
    agent
        .node
        .put(Resource::Manifests, manifest("web.yaml", good));
    let bad = json!({ "state": "Bad", "reason": "Invalid", "message": "unknown field \"x\"",
                      "line": 3 });
    agent
        .node
        .put(Resource::Manifests, manifest("bad.yaml", bad));
    assert_eq!(
        agent.type_in("get manifests").data(),
        "\
FILE          PODS     STATUS   AGE      REASON
/m/bad.yaml   <none>   bad      <none>   line 3: unknown field \"x\"
/m/web.yaml   web-n1   ok       9h       <none>
"
    );
    assert_eq!(
        agent.type_in("get mf web -o name").data(),
        "manifest.node.rubelet.dev/web.yaml\n"
    );
    agent.node.put(
        Resource::Events,
        event("default", "b", "web-n1", 9, "second\nline"),
    );
    agent.node.put(
        Resource::Events,
        event("default", "c", "web-n1", 20, "first"),
    );
    assert_eq!(
        agent.type_in("get events").data(),
        "\
LAST SEEN   TYPE     REASON    OBJECT       MESSAGE
20h         Normal   Started   pod/web-n1   first
9h          Normal   Started   pod/web-n1   second...
"
    );
}

#[test]
fn documents_are_what_kubectl_would_print() {
    let agent = agent();
    let one: Value = serde_json::from_str(&agent.type_in("get pod web -o json").data()).unwrap();
    assert_eq!(
        (&one["kind"], &one["apiVersion"]),
        (&json!("Pod"), &json!("v1"))
    );
    assert_eq!(one["metadata"]["resourceVersion"], "1001");
    let list: Value = serde_json::from_str(&agent.type_in("get pods -o json").data()).unwrap();
    assert_eq!(
        (&list["kind"], list["items"].as_array().unwrap().len()),
        (&json!("List"), 2)
    );
    let empty = agent.type_in("get events -o json").data();
    assert_eq!(
        serde_json::from_str::<Value>(&empty).unwrap()["items"],
        json!([])
    );

    let yaml = agent.type_in("get pod/web-n1 -o yaml").data();
    assert!(
        yaml.starts_with("apiVersion: v1\nkind: Pod\nmetadata:\n"),
        "{yaml}"
    );
    let documents = rubelet_yaml::documents(&yaml).unwrap();
    assert_eq!(*documents[0].value(), one);
}

#[test]
fn a_name_may_be_short_as_long_as_it_is_clear() {
    let agent = agent();
    for name in [
        "pod web-n1",
        "pod web",
        "po/web",
        "pods pod/web-n1",
        "pod we",
    ] {
        let out = agent.type_in(&format!("get {name} -o name")).data();
        assert_eq!(out, "pod/web-n1\n", "{name}");
    }
    assert_eq!(
        agent.type_in("get pod w").error(1),
        "error: pod \"w\" is ambiguous; it may be web-n1, worker-n1\n"
    );
    assert_eq!(
        agent.type_in("get pod dns").error(1),
        "error: pods \"dns\" not found in namespace \"default\"; there is kube-system/dns-n1 (use -n)\n"
    );
    assert_eq!(
        agent.type_in("get pod dns -n kube-system -o name").data(),
        "pod/dns-n1\n"
    );
    assert_eq!(
        agent.type_in("get pod dns -A -o name").data(),
        "pod/dns-n1\n"
    );
    assert_eq!(
        agent.type_in("get pod x -A").error(1),
        "error: pods \"x\" not found\n"
    );
}

#[test]
fn selectors_and_order_are_respected() {
    let agent = agent();
    assert_eq!(
        agent.type_in("get pods -l app=web -o name").data(),
        "pod/web-n1\n"
    );
    assert_eq!(
        agent
            .type_in("get pods -A --field-selector metadata.namespace!=default -o name")
            .data(),
        "pod/dns-n1\n"
    );
    assert_eq!(
        agent
            .type_in("get pods -o name --sort-by .status.containerStatuses[0].restartCount")
            .data(),
        "pod/web-n1\npod/worker-n1\n"
    );
    assert_eq!(
        agent
            .type_in("get pods -A -o name --sort-by .metadata.labels.app")
            .data(),
        "pod/worker-n1\npod/dns-n1\npod/web-n1\n"
    );
    assert_eq!(
        agent.type_in("get pods --sort-by .spec.nothing").error(1),
        "error: no object has the field .spec.nothing of --sort-by\n"
    );
    assert!(
        agent
            .type_in("get pods -l a=b=c")
            .error(1)
            .contains("unable to parse label selector")
    );
    assert!(
        agent
            .type_in("get pod web -l app=web")
            .error(2)
            .contains("selector")
    );
}

#[test]
fn nothing_found_says_where_something_is() {
    let agent = TestAgent::start();
    agent
        .node
        .put(Resource::Pods, pod("kube-system", "dns-n1", "dns"));
    agent.node.put(Resource::Pods, pod("web", "web-n1", "web"));
    let result = agent.type_in("get pods");
    assert_eq!((result.code, result.out.as_str()), (0, ""));
    assert_eq!(
        result.err,
        "No resources found in namespace \"default\".\n\
         There are 2 pods in kube-system, web; use -A to see all, or -n NAMESPACE.\n"
    );
    let result = agent.type_in("get manifests");
    assert_eq!(
        (result.code, result.err.as_str()),
        (0, "No resources found\n")
    );
}

#[test]
fn several_names_are_shown_together_and_one_that_is_missing_is_reported() {
    let agent = agent();
    assert_eq!(
        agent.type_in("get pods worker web-n1 -o name").data(),
        "pod/worker-n1\npod/web-n1\n"
    );
    let ended = agent.type_in("get pods web nothing -o name");
    assert_eq!((ended.code, &*ended.out), (1, "pod/web-n1\n"));
    assert!(ended.err.contains("\"nothing\" not found"), "{}", ended.err);
}

#[test]
fn wrong_usage_has_its_own_exit_code() {
    let agent = agent();
    for (command, message) in [
        ("get", "required arguments"),
        ("get nodes", "unknown resource \"nodes\""),
        ("get pods -o xml", "invalid value 'xml'"),
        ("get pods --sort-by *", "is no field path"),
        ("get pods -n a -A", "cannot be used with"),
        ("get pod/a b", "give names in one form"),
        ("get pods a b -w", "give one name to follow"),
        ("describe events", "only pods can be described"),
        ("logs web --since 0s", "more than 0"),
        ("logs web --limit-bytes 0", "limit-bytes"),
        ("frobnicate", "unrecognized subcommand"),
    ] {
        let error = agent.type_in(command).error(2);
        assert!(error.contains(message), "{command}: {error}");
    }
}

#[test]
fn colors_stand_for_the_status_on_a_terminal_only() {
    let agent = agent();
    let words = agent.words("get pods --no-headers");
    let colored = type_words(words, &Screens::default(), true).data();
    assert_eq!(
        colored,
        "web-n1      1/1   \x1b[32mRunning\x1b[0m            0            3d5h\n\
         worker-n1   0/1   \x1b[31mCrashLoopBackOff\x1b[0m   2 (9h ago)   3d5h\n"
    );
    assert!(!agent.type_in("get pods").data().contains('\x1b'));
}

#[test]
fn text_from_elsewhere_can_not_steer_the_terminal() {
    let agent = TestAgent::start();
    let message = "\x1b[2Jboo";
    agent
        .node
        .put(Resource::Events, event("default", "a", "web", 9, message));
    assert!(agent.type_in("get events").data().ends_with("^[[2Jboo\n"));
}

#[test]
fn a_reader_who_leaves_is_no_error() {
    let agent = agent();
    let screens = Screens::default();
    screens.out.close();
    let result = type_words(agent.words("get pods"), &screens, false);
    assert_eq!((result.code, result.err.as_str()), (0, ""));
}
