//! The container or sandbox of a session, and its peer.

use std::{sync::Arc, time::Duration};

use rubelet_api::status::ContainerState;
use rubelet_cri::{Code, CriErrorKind, v1};
use rubelet_node_state::pod_board::PodEntry;
use rubelet_server::{
    NodeView as _, PodRef, RunRequest, SessionAction, SessionError, SessionRequest,
};
use rubelet_streaming::{SessionKind, SessionTarget, StdStreams};

use super::fixture::{TestView, ending, entry, terminated};

const OUT: StdStreams = StdStreams {
    stdin: false,
    stdout: true,
    stderr: false,
    tty: false,
};

fn web() -> PodRef {
    PodRef {
        namespace: "default".to_owned(),
        name: "web-n1".to_owned(),
    }
}

fn request(action: SessionAction) -> SessionRequest {
    SessionRequest {
        pod: web(),
        uid: None,
        action,
    }
}

fn exec(container: &str) -> SessionRequest {
    request(SessionAction::Exec {
        container: container.to_owned(),
        command: vec!["ls".to_owned(), "-l".to_owned()],
        streams: OUT,
    })
}

fn attach(container: &str) -> SessionRequest {
    request(SessionAction::Attach {
        container: container.to_owned(),
        streams: OUT,
    })
}

fn forward() -> SessionRequest {
    request(SessionAction::PortForward {
        ports: vec![80, 443],
    })
}

fn sandbox(id: &str, created_at: i64) -> v1::PodSandbox {
    v1::PodSandbox {
        id: id.to_owned(),
        created_at,
        ..v1::PodSandbox::default()
    }
}

/// The same pod with a terminal in `web`.
fn with_terminal() -> PodEntry {
    let mut entry = entry();
    let mut pod = (*entry.pod).clone();
    let mut spec = pod.spec.clone();
    for container in &mut spec.containers {
        let mut changed = container.clone();
        changed.tty = *changed.name == *"web";
        *container = changed;
    }
    pod.spec = spec;
    entry.pod = Arc::new(pod);
    entry
}

async fn refusal(seen: &TestView, request: &SessionRequest) -> SessionError {
    match seen.view.session(request).await {
        Ok(_) => panic!("there is a session"),
        Err(error) => error,
    }
}

#[tokio::test(start_paused = true)]
async fn the_runtime_inside_is_asked_without_a_detour() {
    let seen = TestView::with_runtime(true);
    seen.put(with_terminal()).await;
    let SessionTarget::Exec(call, _) = seen.view.session(&exec("web")).await.unwrap() else {
        panic!("another target");
    };
    assert_eq!(
        (&*call.container_id, call.cmd.len(), call.tty),
        ("web-0", 2, false)
    );
    assert!(call.stdout && !call.stdin && !call.stderr);
    for (container, tty) in [("web", true), ("side", false), ("proxy", false)] {
        let target = seen.view.session(&attach(container)).await.unwrap();
        let SessionTarget::Attach(call, _) = target else {
            panic!("another target");
        };
        assert_eq!(call.container_id, format!("{container}-0"));
        assert_eq!(call.tty, tty, "{container}");
    }
    assert!(seen.runtime.asked.lock().unwrap().is_empty());
    *seen.runtime.sandboxes.lock().unwrap() =
        vec![sandbox("old", 1), sandbox("new", 3), sandbox("older", 2)];
    let SessionTarget::PortForward(call, _) = seen.view.session(&forward()).await.unwrap() else {
        panic!("another target");
    };
    assert_eq!((&*call.pod_sandbox_id, call.port), ("new", vec![80, 443]));
    let asked = seen.runtime.asked.lock().unwrap().pop().unwrap();
    let uid = entry().pod.uid.as_str().to_owned();
    assert!(
        asked.contains(&uid) && asked.contains("SandboxReady"),
        "{asked}"
    );
    assert_eq!(seen.view.session_idle_timeout(), Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn another_runtime_answers_with_the_url_of_its_streams() {
    let seen = TestView::new();
    seen.put(with_terminal()).await;
    *seen.runtime.sandboxes.lock().unwrap() = vec![sandbox("s1", 1)];
    *seen.runtime.url.lock().unwrap() = "http://127.0.0.1:4321/exec/token".to_owned();
    let terminal = StdStreams { tty: true, ..OUT };
    for (request, kind, streams, asked) in [
        (
            exec("web"),
            SessionKind::Exec,
            OUT,
            "ExecRequest { container_id: \"web-0\"",
        ),
        (
            attach("web"),
            SessionKind::Attach,
            terminal,
            "AttachRequest { container_id: \"web-0\"",
        ),
        (
            forward(),
            SessionKind::PortForward,
            StdStreams::default(),
            "PortForwardRequest { pod_sandbox_id: \"s1\", port: [80, 443]",
        ),
    ] {
        let target = seen.view.session(&request).await.unwrap();
        let SessionTarget::Url {
            url,
            kind: of,
            streams: with,
            ports,
        } = target
        else {
            panic!("another target");
        };
        assert_eq!(url.to_string(), "http://127.0.0.1:4321/exec/token");
        assert_eq!((of, with), (kind, streams));
        let named: &[u16] = match kind {
            SessionKind::PortForward => &[80, 443],
            SessionKind::Exec | SessionKind::Attach => &[],
        };
        assert_eq!(ports, named);
        let last = seen.runtime.asked.lock().unwrap().pop().unwrap();
        assert!(last.starts_with(asked), "{last}");
    }
    *seen.runtime.url.lock().unwrap() = "no url".to_owned();
    let SessionError::Runtime(why) = refusal(&seen, &exec("web")).await else {
        panic!("another error");
    };
    assert!(why.contains("\"no url\", which is no URL"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn what_does_not_run_is_refused() {
    let seen = TestView::with_runtime(true);
    assert_eq!(refusal(&seen, &exec("web")).await, SessionError::NoPod);
    let mut entry = entry();
    entry.status.containers[0].state = ContainerState::Terminated(terminated("side-0", 1));
    seen.put(entry.clone()).await;
    for container in ["side", "setup", "nothing", ""] {
        assert_eq!(
            refusal(&seen, &exec(container)).await,
            SessionError::NotRunning
        );
        assert_eq!(
            refusal(&seen, &attach(container)).await,
            SessionError::NotRunning
        );
    }
    // The container of another pod of that name is none of this one's.
    for (uid, expected) in [
        (entry.pod.uid.as_str(), None),
        ("other", Some(SessionError::NotRunning)),
    ] {
        let request = SessionRequest {
            uid: Some(uid.to_owned()),
            ..exec("web")
        };
        assert_eq!(seen.view.session(&request).await.err(), expected);
    }
    let other = SessionRequest {
        uid: Some("other".to_owned()),
        ..forward()
    };
    assert_eq!(refusal(&seen, &other).await, SessionError::OtherUid);
    assert_eq!(refusal(&seen, &forward()).await, SessionError::NoSandbox);
}

#[tokio::test(start_paused = true)]
async fn of_two_pods_of_a_name_the_one_that_runs_is_meant() {
    let seen = TestView::with_runtime(true);
    let mut waits = entry();
    let mut pod = (*waits.pod).clone();
    pod.uid = "next".into();
    waits.pod = Arc::new(pod);
    for container in &mut waits.status.containers {
        container.container_id = "".into();
        container.state = ContainerState::Waiting {
            reason: "ContainerCreating".into(),
            message: "".into(),
        };
    }
    waits.status.init_containers.clear();
    seen.board.set(waits.pod.uid.clone(), waits);
    seen.put(ending(30)).await;
    let SessionTarget::Exec(call, _) = seen.view.session(&exec("web")).await.unwrap() else {
        panic!("another target");
    };
    assert_eq!(call.container_id, "web-0");
}

#[tokio::test(start_paused = true)]
async fn errors_of_the_runtime_keep_their_kind_and_words() {
    let seen = TestView::new();
    seen.put(entry()).await;
    let text = |code: &str| format!("rpc error: code = {code} desc = as told");
    for (kind, expected) in [
        (
            CriErrorKind::NotFound,
            SessionError::RuntimeNotFound(text("NotFound")),
        ),
        (
            CriErrorKind::ResourceExhausted,
            SessionError::RuntimeExhausted(text("ResourceExhausted")),
        ),
        (
            CriErrorKind::Canceled,
            SessionError::Runtime(text("Canceled")),
        ),
        (
            CriErrorKind::Other(Code::Unknown),
            SessionError::Runtime(text("Unknown")),
        ),
    ] {
        *seen.runtime.error.lock().unwrap() = Some(kind);
        for request in [exec("web"), attach("web"), forward()] {
            assert_eq!(refusal(&seen, &request).await, expected);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_command_is_run_to_its_end() {
    let seen = TestView::with_runtime(true);
    seen.put(entry()).await;
    let mut request = RunRequest {
        pod: web(),
        uid: None,
        container: "web".to_owned(),
        command: vec!["ls".to_owned(), "/x".to_owned()],
    };
    let answer = |exit_code| v1::ExecSyncResponse {
        stdout: b"out ".to_vec(),
        stderr: b"err".to_vec(),
        exit_code,
    };
    *seen.runtime.output.lock().unwrap() = answer(0);
    assert_eq!(seen.view.run(&request).await.unwrap(), "out err");
    let asked = seen.runtime.asked.lock().unwrap().pop().unwrap();
    assert!(
        asked.contains("\"web-0\"") && asked.contains("timeout: 0"),
        "{asked}"
    );
    *seen.runtime.output.lock().unwrap() = answer(2);
    let failed = seen.view.run(&request).await.unwrap_err();
    assert_eq!(failed.to_string(), "command 'ls /x' exited with 2: err");
    *seen.runtime.error.lock().unwrap() = Some(CriErrorKind::NotFound);
    let failed = seen.view.run(&request).await.unwrap_err();
    assert_eq!(
        failed.to_string(),
        "rpc error: code = NotFound desc = as told"
    );
    request.container = "setup".to_owned();
    assert_eq!(seen.view.run(&request).await, Err(SessionError::NotRunning));
}
