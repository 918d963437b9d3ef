//! Manifests from a web server.

use rubelet_testbed::status::is_ready;
use rubelet_testbed::{Agent, TestRuntime};
use serde_json::{Value, json};

use crate::container_id;
use crate::outside::http_server::HttpServer;
use crate::outside::{PodText, TIMEOUT, pod_text, states, truth};

#[test]
fn pods_of_a_url_follow_its_changes_and_outlive_its_errors() {
    let runtime = TestRuntime::start().unwrap();
    let truth = runtime.truth().unwrap();
    let one = PodText::new("one");
    let server = HttpServer::start(&one.yaml());
    let mut agent = Agent::builder(&runtime)
        .flag(format!("--manifest-url={}", server.url()))
        .config("httpCheckFrequency", "100ms")
        .config(
            "staticPodURLHeader",
            json!({ "X-Node": ["testnode"], "Authorization": ["Bearer secret"] }),
        )
        .start()
        .unwrap();
    let pod = states::wait_ready(&agent, "one");
    let id = container_id(&pod);
    let annotations = &pod["metadata"]["annotations"];
    assert_eq!(annotations["kubernetes.io/config.source"], "http");
    let (_, headers) = server.requests();
    assert_eq!(headers["x-node"], "testnode");
    assert_eq!(headers["authorization"], "Bearer secret");
    let log = std::fs::read_to_string(agent.log_path()).unwrap();
    assert!(!log.contains("Bearer"), "secrets stay out of the log");

    // Repeated equal responses change nothing.
    let status = agent.pod("one").unwrap().unwrap();
    wait_requests(&agent, &server, 5);
    assert_eq!(agent.pod("one").unwrap().unwrap(), status);

    for (code, text) in [(500, "oh no"), (404, ""), (200, "{\"half\":"), (200, "")] {
        server.set(code, text);
        let shown = wait_state(&agent, &server, "Bad");
        let message = shown["status"]["message"].as_str().unwrap();
        assert!(
            message.ends_with("(its last good version counts)"),
            "{code}: {message}"
        );
        wait_requests(&agent, &server, 2);
        let now = agent.pod("one").unwrap().unwrap();
        assert!(is_ready(&now), "{code}");
        assert_eq!(container_id(&now), id, "{code}");
        server.set(200, &one.yaml());
        wait_state(&agent, &server, "Ok");
    }

    // A list that contains the existing pod unchanged.
    let list = pod_text::list(&[one.clone(), PodText::new("two")]);
    server.set(200, &list);
    states::wait_ready(&agent, "two");
    assert_eq!(container_id(&agent.pod("one").unwrap().unwrap()), id);

    // A kill of the agent while the server fails loses neither pod.
    let before = truth::instances(&truth);
    server.set(503, "");
    wait_state(&agent, &server, "Bad");
    let record = agent.root_dir().join("rubelet/held-manifests.json");
    let is_kept = |_: &Agent| {
        let text = std::fs::read_to_string(&record).unwrap_or_default();
        Ok(text.contains("two").then_some(()))
    };
    agent
        .wait_for("both pods are on the disk", TIMEOUT, is_kept)
        .unwrap();
    agent.kill9().unwrap();
    agent.start().unwrap();
    states::wait_all_ready(&agent, 2);
    wait_requests(&agent, &server, 2);
    assert_eq!(truth::instances(&truth), before);

    // Without any pods.
    server.set(200, &pod_text::list(&[]));
    truth::wait_empty(&agent, &truth);
}

/// Waits for this many more requests.
fn wait_requests(agent: &Agent, server: &HttpServer, more: usize) {
    let (before, _) = server.requests();
    agent
        .wait_for("the agent asks again", TIMEOUT, |_| {
            Ok((server.requests().0 > before + more).then_some(()))
        })
        .unwrap();
}

fn wait_state(agent: &Agent, server: &HttpServer, state: &str) -> Value {
    let url = server.url();
    let found = agent.wait_for(&format!("the URL is {state}"), TIMEOUT, |agent| {
        let mut list = agent.get_json("/apis/node.rubelet.dev/v1alpha1/manifests")?;
        let Value::Array(items) = list["items"].take() else {
            return Ok(None);
        };
        Ok(items.into_iter().find(|item| {
            item["metadata"]["name"] == url.as_str() && item["status"]["state"] == state
        }))
    });
    found.unwrap()
}
