//! `-w`: changes as they come, over a restart of the agent, until the reader leaves.

use rubelet_server::Resource;

use super::fixture::{TestAgent, crashing_pod, event, pod};

#[test]
fn changes_come_as_rows() {
    let agent = TestAgent::start();
    agent
        .node
        .put(Resource::Pods, pod("default", "web-n1", "web"));
    let watch = agent.follow("get pods -w");
    assert_eq!(
        watch.screen.take_lines(2),
        [
            "NAME     READY   STATUS    RESTARTS   AGE",
            "web-n1   1/1     Running   0          3d5h",
        ]
    );
    agent
        .node
        .put(Resource::Pods, pod("kube-system", "dns-n1", "dns"));
    agent
        .node
        .put(Resource::Pods, crashing_pod("default", "web-n1"));
    assert_eq!(
        watch.screen.take_lines(1),
        ["web-n1   0/1     CrashLoopBackOff   2 (9h ago)   3d5h"]
    );
    agent.node.pods.remove("default", "web-n1");
    assert_eq!(watch.screen.take_lines(1).len(), 1);
    watch.screen.close();
    agent
        .node
        .put(Resource::Pods, pod("default", "last-n1", "web"));
    let result = watch.thread.join().unwrap();
    assert_eq!((result.code, result.err.as_str()), (0, ""));
}

#[test]
fn one_pod_can_be_watched() {
    let agent = TestAgent::start();
    agent
        .node
        .put(Resource::Pods, pod("default", "web-n1", "web"));
    agent
        .node
        .put(Resource::Pods, pod("default", "db-n1", "db"));
    let watch = agent.follow("get pod web -w -o name");
    assert_eq!(watch.screen.take_lines(1), ["pod/web-n1"]);
    agent
        .node
        .put(Resource::Pods, crashing_pod("default", "db-n1"));
    agent
        .node
        .put(Resource::Pods, crashing_pod("default", "web-n1"));
    assert_eq!(watch.screen.take_lines(1), ["pod/web-n1"]);
    watch.screen.close();
    agent
        .node
        .put(Resource::Pods, pod("default", "web-n1", "web"));
    assert_eq!(watch.thread.join().unwrap().code, 0);
}

#[test]
fn a_restart_of_the_agent_repeats_nothing_and_loses_nothing() {
    let mut agent = TestAgent::start();
    agent
        .node
        .put(Resource::Pods, pod("default", "web-n1", "web"));
    agent
        .node
        .put(Resource::Pods, pod("default", "db-n1", "db"));
    let watch = agent.follow("get pods -w -o name");
    assert_eq!(watch.screen.take_lines(2), ["pod/db-n1", "pod/web-n1"]);
    let web = agent.node.pods.listing().items[1].to_json(Resource::Pods);
    let agent = agent.restart();
    agent.node.put(Resource::Pods, web);
    agent
        .node
        .put(Resource::Pods, crashing_pod("default", "db-n1"));
    assert_eq!(watch.screen.take_lines(1), ["pod/db-n1"]);
    agent
        .node
        .put(Resource::Pods, pod("default", "new-n1", "new"));
    assert_eq!(watch.screen.take_lines(1), ["pod/new-n1"]);
    watch.screen.close();
    agent
        .node
        .put(Resource::Pods, pod("default", "last-n1", "web"));
    assert_eq!(watch.thread.join().unwrap().code, 0);
}

#[test]
fn an_absent_agent_is_mentioned_once() {
    let mut agent = TestAgent::start();
    agent
        .node
        .put(Resource::Pods, pod("default", "web-n1", "web"));
    let watch = agent.follow("get pods -w -o name");
    watch.screen.take_lines(1);
    agent.stop();
    let note = "the agent does not respond; waiting for it";
    assert_eq!(watch.errors.take_lines(1), [note]);
    let agent = agent.restart();
    watch.screen.close();
    agent
        .node
        .put(Resource::Pods, pod("default", "last-n1", "web"));
    let result = watch.thread.join().unwrap();
    assert_eq!((result.code, result.err.as_str()), (0, ""));
}

#[test]
fn events_can_be_followed() {
    let agent = TestAgent::start();
    agent.node.put(
        Resource::Events,
        event("default", "a", "web-n1", 20, "first"),
    );
    let watch = agent.follow("events -w --no-headers");
    assert_eq!(
        watch.screen.take_lines(1),
        ["20h   Normal   Started   pod/web-n1   first"]
    );
    agent.node.put(
        Resource::Events,
        event("default", "b", "web-n1", 9, "second"),
    );
    assert_eq!(
        watch.screen.take_lines(1),
        ["9h    Normal   Started   pod/web-n1   second"]
    );
    watch.screen.close();
    agent.node.put(
        Resource::Events,
        event("default", "c", "web-n1", 9, "third"),
    );
    assert_eq!(watch.thread.join().unwrap().code, 0);
}

#[test]
fn documents_of_a_watch_are_separate() {
    let agent = TestAgent::start();
    agent
        .node
        .put(Resource::Pods, pod("default", "a-n1", "web"));
    agent
        .node
        .put(Resource::Pods, pod("default", "b-n1", "web"));
    let watch = agent.follow("get pods -w -o yaml");
    let lines = watch.screen.take_lines(53);
    let documents = rubelet_yaml::documents(&(lines.join("\n") + "\n")).unwrap();
    assert_eq!(documents.len(), 2);
    watch.screen.close();
    agent
        .node
        .put(Resource::Pods, pod("default", "c-n1", "web"));
    assert_eq!(watch.thread.join().unwrap().code, 0);
}
