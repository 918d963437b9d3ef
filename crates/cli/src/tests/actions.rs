//! `rubelet restart`, `delete`, `debug` and `why`: what is asked of the agent, and what is printed.

use rubelet_server::{ActionError, PodAnswer, Resource};
use serde_json::{Value, json};

use super::fixture::{TestAgent, pod};

fn agent() -> TestAgent {
    let agent = TestAgent::start();
    agent
        .node
        .put(Resource::Pods, pod("default", "web-n1", "web"));
    agent
        .node
        .put(Resource::Pods, pod("default", "worker-n1", "worker"));
    agent
        .node
        .put(Resource::Pods, pod("kube-system", "dns-n1", "dns"));
    agent
}

fn done(agent: &TestAgent) -> Vec<String> {
    std::mem::take(&mut *agent.node.actions.lock().unwrap())
}

fn answer(agent: &TestAgent, answer: Result<PodAnswer, ActionError>) {
    agent.node.action_answers.lock().unwrap().push_back(answer);
}

fn document(json: Value) -> Result<PodAnswer, ActionError> {
    Ok(PodAnswer::Document(json))
}

/// The pod with its container in that state.
fn with_status(status: Value) -> Value {
    let mut pod = pod("default", "web-n1", "web");
    pod["status"]["containerStatuses"] = Value::Array(vec![status]);
    pod
}

fn running(id: &str) -> Value {
    json!({ "name": "main", "ready": true, "containerID": id,
            "state": { "running": { "startedAt": "2026-03-01T12:00:00Z" } } })
}

fn restarting(id: Option<&str>) -> Result<PodAnswer, ActionError> {
    let mut container = json!({ "name": "main" });
    if let Some(id) = id {
        container["containerID"] = id.into();
    }
    document(json!({ "containers": [container] }))
}

#[test]
fn a_restart_ends_when_the_new_instance_runs() {
    let agent = agent();
    agent
        .node
        .put(Resource::Pods, with_status(running("c://old")));
    answer(&agent, restarting(Some("c://old")));
    let restart = agent.follow("restart web -c main");
    while done(&agent).is_empty() {
        std::thread::yield_now();
    }
    assert_eq!(restart.screen.text(), "");
    agent
        .node
        .put(Resource::Pods, with_status(running("c://new")));
    let ended = restart.thread.join().unwrap();
    assert_eq!(ended.data(), "pod/web-n1: container main was restarted\n");
}

#[test]
fn the_pod_of_a_restart_can_be_named_in_every_way() {
    let agent = agent();
    for words in [
        "web",
        "pod/web",
        "pods/web-n1",
        "pod web",
        "web-n1 --timeout 0s",
        "we",
    ] {
        answer(&agent, restarting(None));
        let command = format!("restart {words} --no-wait");
        assert_eq!(
            agent.type_in(&command).data(),
            "pod/web-n1: restart of container main requested\n",
            "{words}"
        );
        assert_eq!(done(&agent), ["default/web-n1: restart None"]);
    }
    answer(&agent, restarting(None));
    agent
        .type_in("restart dns -n kube-system -c main --no-wait")
        .data();
    assert_eq!(done(&agent), ["kube-system/dns-n1: restart Some(\"main\")"]);
}

#[test]
fn a_restart_that_comes_to_nothing_is_an_error() {
    let agent = agent();
    let refused = "\"setup\" is an init container: it runs again only in a new sandbox";
    answer(&agent, Err(ActionError::Conflict(refused.to_owned())));
    assert_eq!(
        agent.type_in("restart web -c setup").error(1),
        format!("error: {refused}\n")
    );
    for (status, message) in [
        (
            json!({ "name": "main", "containerID": "c://new",
                    "state": { "terminated": { "containerID": "c://new", "exitCode": 7 } } }),
            "container main was restarted and ended with exit code 7; see `rubelet why pod/web-n1`",
        ),
        (
            json!({ "name": "main", "state": { "waiting": { "reason": "ErrImagePull" } } }),
            "not done after 1ms: container main waits (ErrImagePull)",
        ),
    ] {
        agent.node.put(Resource::Pods, with_status(status));
        answer(&agent, restarting(Some("c://old")));
        let error = agent.type_in("restart web --timeout 1ms").error(1);
        assert!(error.contains(message), "{error}");
    }
    let mut going = with_status(running("c://old"));
    going["metadata"]["deletionTimestamp"] = "2026-03-01T12:00:00Z".into();
    agent.node.put(Resource::Pods, going);
    answer(&agent, restarting(Some("c://old")));
    assert_eq!(
        agent.type_in("restart web").error(1),
        "error: the pod is being removed\n"
    );
    for command in [
        "restart",
        "restart a b",
        "restart event/x",
        "restart web --timeout x",
    ] {
        agent.type_in(command).error(2);
    }
}

#[test]
fn a_delete_says_how_long_the_pod_may_still_take() {
    let agent = agent();
    let mut going = pod("default", "web-n1", "web");
    going["metadata"]["deletionTimestamp"] = "2026-03-01T12:00:00Z".into();
    going["metadata"]["deletionGracePeriodSeconds"] = 5.into();
    agent.node.put(Resource::Pods, going);
    for (words, grace) in [
        ("", "None"),
        (" --grace-period 5", "Some(5)"),
        (" --now", "Some(1)"),
        (" --grace-period=0", "Some(0)"),
    ] {
        assert_eq!(
            agent.type_in(&format!("delete pod/web{words}")).data(),
            "pod/web-n1 is terminating with a grace period of 5 s; SIGKILL in 0 s\n"
        );
        assert_eq!(done(&agent), [format!("default/web-n1: delete {grace}")]);
    }
    let kept = "the pod is kept by manifest /m/web.yaml: remove or move that file";
    answer(&agent, Err(ActionError::Conflict(kept.to_owned())));
    assert_eq!(
        agent.type_in("delete pod web").error(1),
        format!("error: {kept}\n")
    );
    for command in [
        "delete",
        "delete web --now --grace-period 3",
        "delete web --grace-period -1",
        "delete manifest/x",
    ] {
        agent.type_in(command).error(2);
    }
}

#[test]
fn a_debug_container_is_described_to_the_agent() {
    let agent = agent();
    let ended = agent.type_in("debug web --image busybox --target main -c look -- ps -ef");
    assert_eq!(
        (ended.code, ended.out.as_str()),
        (0, "pod/web-n1: ephemeral container look was added\n")
    );
    assert_eq!(ended.err, "Its log: rubelet logs pod/web-n1 -c look -f\n");
    let done = done(&agent);
    let added = done[0].strip_prefix("default/web-n1: add ").unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(added).unwrap(),
        json!([{
            "name": "look", "image": "busybox", "command": ["ps", "-ef"],
            "targetContainerName": "main",
            "securityContext": { "capabilities": { "add": ["SYS_PTRACE"] } },
        }])
    );
}

#[test]
fn a_debug_container_without_name_and_command_gets_a_name_and_a_warning() {
    let agent = agent();
    let ended = agent.type_in("debug pod dns -n kube-system --image busybox");
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(
        ended
            .out
            .starts_with("pod/dns-n1: ephemeral container debugger-")
    );
    assert!(ended.err.starts_with("It has no stdin: "), "{}", ended.err);
    assert!(ended.err.ends_with(" -f -n kube-system\n"), "{}", ended.err);
    assert!(done(&agent)[0].contains("\"image\":\"busybox\""));
}

fn with_ephemeral(state: &Value) -> Value {
    let mut pod = pod("default", "web-n1", "web");
    pod["status"]["ephemeralContainerStatuses"] = json!([{ "name": "look", "state": state }]);
    pod
}

#[test]
fn an_interactive_debug_container_that_can_not_run_says_why() {
    let agent = agent();
    let creating = json!({ "waiting": { "reason": "ContainerCreating" } });
    agent.node.put(Resource::Pods, with_ephemeral(&creating));
    let debug = agent.follow("debug -it web --image busybox -c look");
    let asked = loop {
        if let [asked] = done(&agent).as_slice() {
            break asked.clone();
        }
        std::thread::yield_now();
    };
    let asked: Value = serde_json::from_str(asked.split_once("add ").unwrap().1).unwrap();
    assert_eq!(
        (&asked[0]["stdin"], &asked[0]["tty"]),
        (&true.into(), &true.into())
    );
    let refused = json!({ "waiting": { "reason": "ErrImagePull", "message": "no such image" } });
    agent.node.put(Resource::Pods, with_ephemeral(&refused));
    let told = debug.thread.join().unwrap().error(1);
    assert!(
        told.starts_with("error: container look cannot run: ErrImagePull: no such image; once"),
        "{told}"
    );
}

#[test]
fn a_debug_container_that_can_not_be_had_is_an_error() {
    let agent = agent();
    let mut debugged = pod("default", "web-n1", "web");
    debugged["spec"]["ephemeralContainers"] = json!([{ "name": "look", "image": "x" }]);
    agent.node.put(Resource::Pods, debugged);
    let error = agent.type_in("debug web --image x -c look").error(1);
    assert!(
        error.contains("has an ephemeral container \"look\" already"),
        "{error}"
    );
    assert_eq!(done(&agent), [""; 0]);
    agent.type_in("debug web").error(2);
    agent.type_in("debug --image x").error(2);
    agent.type_in("debug web db --image x").error(2);
}

#[test]
fn the_reasons_are_sentences_or_a_document() {
    let agent = agent();
    let explanation = json!({
        "namespace": "default", "name": "web-n1", "uid": "u1", "time": "2026-03-01T12:00:00Z",
        "phase": "Running", "ready": true, "readySince": "2026-03-01T11:00:00Z",
        "containers": [{
            "name": "main", "kind": "regular", "ready": true, "started": true, "restarts": 0,
            "state": { "state": "running", "since": "2026-03-01T11:00:00Z" },
        }],
    });
    answer(&agent, document(explanation.clone()));
    assert_eq!(
        agent.type_in("why pod/web").data(),
        "\
pod default/web-n1 is ready for 1 h, and no container of it was restarted
  phase Running
  ready for 1 h (since 2026-03-01T11:00:00Z)
  container main: running for 1 h, ready
"
    );
    answer(&agent, document(explanation.clone()));
    let json: Value = serde_json::from_str(&agent.type_in("why web -o json").data()).unwrap();
    assert_eq!(json["kind"], "PodExplanation");
    assert_eq!(json["containers"], explanation["containers"]);
    answer(&agent, document(explanation));
    let yaml = agent.type_in("why web -o yaml").data();
    assert!(
        yaml.starts_with("apiVersion: node.rubelet.dev/v1alpha1\n"),
        "{yaml}"
    );
    answer(&agent, document(json!({ "name": 3 })));
    let error = agent.type_in("why web").error(1);
    assert!(error.contains("makes no sense"), "{error}");
    assert_eq!(
        agent.type_in("why nothing").error(1),
        "error: pods \"nothing\" not found in namespace \"default\"\n"
    );
    agent.type_in("why web -o wide").error(2);
    agent.type_in("why").error(2);
}

#[test]
fn a_status_that_waits_is_coloured_by_what_it_is() {
    let agent = TestAgent::start();
    let mut starting = with_status(json!({
        "name": "main", "ready": false, "restartCount": 0,
        "state": { "waiting": { "reason": "ContainerCreating" } },
    }));
    let soon = rubelet_server::clock::now() + jiff::SignedDuration::from_secs(150 * 60 + 30);
    starting["metadata"]["annotations"] =
        json!({ "rubelet.dev/next-try": json!({ "main": soon.to_string() }).to_string() });
    agent.node.put(Resource::Pods, starting);
    let words = agent.words("get pods --no-headers");
    let screens = super::fixture::Screens::default();
    let colored = super::fixture::type_words(words, &screens, true).data();
    assert!(
        colored.contains("\x1b[33mContainerCreating (try in 150m)\x1b[0m"),
        "{colored:?}"
    );
}
