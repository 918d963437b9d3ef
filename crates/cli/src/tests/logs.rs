//! `rubelet logs`.

use std::io;

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use rubelet_server::{LogError, LogRequest, LogSince, LogStream, Resource};
use serde_json::json;

use super::fixture::{TestAgent, pod};

fn agent() -> TestAgent {
    let agent = TestAgent::start();
    agent
        .node
        .put(Resource::Pods, pod("default", "web-n1", "web"));
    let mut two = pod("default", "two-n1", "two");
    two["spec"]["containers"] = json!([{ "name": "main" }, { "name": "side" }]);
    two["spec"]["initContainers"] = json!([{ "name": "setup" }]);
    agent.node.put(Resource::Pods, two);
    agent
}

fn log(agent: &TestAgent, pieces: &[&'static str]) {
    let pieces: Vec<_> = pieces
        .iter()
        .map(|piece| Ok(Bytes::from_static(piece.as_bytes())))
        .collect();
    answer(agent, Ok(Box::pin(stream::iter(pieces))));
}

fn answer(agent: &TestAgent, answer: Result<LogStream, LogError>) {
    agent.node.log_answers.lock().unwrap().push_back(answer);
}

#[test]
fn a_log_is_printed_as_it_is() {
    let agent = agent();
    log(&agent, &["one\n", "two"]);
    assert_eq!(agent.type_in("logs web").data(), "one\ntwo");
    log(&agent, &["end\n"]);
    assert_eq!(agent.type_in("logs -f pod/web-n1").data(), "end\n");
    log(&agent, &[]);
    assert_eq!(agent.type_in("logs web").data(), "");
}

#[test]
fn options_reach_the_agent() {
    let agent = agent();
    log(&agent, &[]);
    agent
        .type_in("logs two -c side -f -p --tail 5 --since 1500ms --timestamps --limit-bytes 9")
        .data();
    log(&agent, &[]);
    agent
        .type_in("logs two -c setup --tail 0 --since-time 2026-03-01T12:00:00+01:00")
        .data();
    let first = LogRequest {
        namespace: "default".to_owned(),
        pod: "two-n1".to_owned(),
        container: "side".to_owned(),
        follow: true,
        previous: true,
        since: Some(LogSince::Seconds(2)),
        timestamps: true,
        tail_lines: Some(5),
        limit_bytes: Some(9),
        output: None,
    };
    let second = LogRequest {
        container: "setup".to_owned(),
        follow: false,
        previous: false,
        since: Some(LogSince::Time("2026-03-01T11:00:00Z".parse().unwrap())),
        timestamps: false,
        tail_lines: Some(0),
        limit_bytes: None,
        ..first.clone()
    };
    assert_eq!(*agent.node.log_requests.lock().unwrap(), [first, second]);
}

#[test]
fn a_container_may_stand_behind_the_pod_as_with_kubectl() {
    let agent = agent();
    log(&agent, &["x\n"]);
    assert_eq!(agent.type_in("logs two side").data(), "x\n");
    let asked = agent.node.log_requests.lock().unwrap();
    assert_eq!(asked.last().unwrap().container, "side");
    drop(asked);
    let twice = agent.type_in("logs two side -c main");
    let twice = twice.error(2);
    assert!(twice.contains("cannot be used with"), "{twice}");
}

#[test]
fn all_containers_come_one_after_the_other() {
    let agent = agent();
    log(&agent, &["setting", " up"]);
    log(&agent, &["one\ntwo\n"]);
    log(&agent, &[]);
    let result = agent.type_in("logs two --all-containers");
    assert_eq!(result.data(), "setting up\none\ntwo\n");
    let asked = agent.node.log_requests.lock().unwrap();
    let asked: Vec<&str> = asked.iter().map(|one| &*one.container).collect();
    assert_eq!(asked, ["setup", "main", "side"]);
}

#[test]
fn a_container_without_a_log_does_not_hide_those_of_the_others() {
    let agent = agent();
    log(&agent, &["set\n"]);
    let waiting = "container \"main\" in pod \"two-n1\" is waiting to start: PodInitializing";
    answer(&agent, Err(LogError::BadRequest(waiting.to_owned())));
    log(&agent, &["x\n"]);
    let result = agent.type_in("logs two --all-containers --prefix");
    assert_eq!(result.code, 1);
    assert_eq!(result.out, "[pod/two-n1/setup] set\n[pod/two-n1/side] x\n");
    let told =
        format!("error: container main: {waiting}\nerror: 1 of 3 containers have no such log\n");
    assert_eq!(result.err, told);
}

#[test]
fn followed_logs_are_printed_line_by_line_as_they_come() {
    let agent = agent();
    let (main_goes_on, main) = tokio::sync::oneshot::channel();
    let (side_goes_on, side) = tokio::sync::oneshot::channel();
    let follows = |first: &'static [u8], rest: tokio::sync::oneshot::Receiver<&'static [u8]>| {
        let first = stream::iter([Ok(Bytes::from_static(first))]);
        let rest = async { Ok(Bytes::from_static(rest.await.unwrap())) };
        Ok(Box::pin(first.chain(stream::once(rest))) as LogStream)
    };
    log(&agent, &["set\n"]);
    answer(&agent, follows(b"one\nhal", main));
    answer(&agent, follows(b"x\n", side));
    let follow = agent.follow("logs two --all-containers --prefix -f");
    let mut lines = follow.screen.take_lines(3);
    lines.sort();
    let expected = ["main] one", "setup] set", "side] x"];
    assert_eq!(lines, expected.map(|line| format!("[pod/two-n1/{line}")));
    side_goes_on.send(b"y\n").unwrap();
    assert_eq!(follow.screen.take_lines(1), ["[pod/two-n1/side] y"]);
    main_goes_on.send(b"f").unwrap();
    assert_eq!(follow.screen.take_lines(1), ["[pod/two-n1/main] half"]);
    assert_eq!(follow.thread.join().unwrap().code, 0);
}

#[test]
fn one_container_may_have_its_name_before_each_line_too() {
    let agent = agent();
    log(&agent, &["a\nb\n"]);
    let result = agent.type_in("logs web --prefix");
    assert_eq!(result.data(), "[pod/web-n1/main] a\n[pod/web-n1/main] b\n");
    let waiting = "container \"main\" in pod \"web-n1\" is waiting to start: ErrImagePull";
    answer(&agent, Err(LogError::BadRequest(waiting.to_owned())));
    let result = agent.type_in("logs web --prefix");
    assert_eq!(result.error(1), format!("error: {waiting}\n"));
    for both in ["-c main", "main"] {
        let result = agent.type_in(&format!("logs two {both} --all-containers"));
        let told = result.error(2);
        assert!(told.contains("cannot be used with"), "{told}");
    }
}

#[test]
fn the_first_container_is_meant_unless_the_pod_says_otherwise() {
    let agent = agent();
    log(&agent, &["x\n"]);
    let result = agent.type_in("logs two");
    assert_eq!((result.code, result.out.as_str()), (0, "x\n"));
    assert_eq!(
        result.err,
        "Defaulted container \"main\" out of: main, side, setup (init)\n"
    );
    let mut two = pod("default", "two-n1", "two");
    two["spec"]["containers"] = json!([{ "name": "main" }, { "name": "side" }]);
    two["metadata"]["annotations"] = json!({ "kubectl.kubernetes.io/default-container": "side" });
    agent.node.put(Resource::Pods, two);
    log(&agent, &["x\n"]);
    assert!(
        agent
            .type_in("logs two")
            .err
            .starts_with("Defaulted container \"side\"")
    );
}

#[test]
fn what_is_missing_is_an_error() {
    let agent = agent();
    assert_eq!(
        agent.type_in("logs two -c nope").error(1),
        "error: container nope is not valid for pod two-n1; it has main, side, setup (init)\n"
    );
    assert_eq!(
        agent.type_in("logs nope").error(1),
        "error: pods \"nope\" not found in namespace \"default\"\n"
    );
    let waiting = "container \"main\" in pod \"web-n1\" is waiting to start: ImagePullBackOff";
    answer(&agent, Err(LogError::BadRequest(waiting.to_owned())));
    assert_eq!(
        agent.type_in("logs web").error(1),
        format!("error: {waiting}\n")
    );
}

#[test]
fn a_log_that_breaks_off_is_an_error() {
    let agent = agent();
    let (disk_fails, failure) = tokio::sync::oneshot::channel();
    let first = stream::iter([Ok(Bytes::from_static(b"one\n"))]);
    let log = first.chain(stream::once(async { Err(failure.await.unwrap()) }));
    answer(&agent, Ok(Box::pin(log)));
    let follow = agent.follow("logs web -f");
    assert_eq!(follow.screen.take_lines(1), ["one"]);
    disk_fails.send(io::Error::other("disk")).unwrap();
    let result = follow.thread.join().unwrap();
    assert_eq!(result.code, 1);
    assert!(
        result.err.starts_with("error: the log ended early"),
        "{}",
        result.err
    );
}

#[test]
fn a_reader_who_leaves_ends_the_log_quietly() {
    let agent = agent();
    log(&agent, &["one\n", "two\n"]);
    let follow = agent.follow("logs web -f");
    follow.screen.close();
    let result = follow.thread.join().unwrap();
    assert_eq!((result.code, result.err.as_str()), (0, ""));
}
