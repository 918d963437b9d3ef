//! Explanations word for word.

use serde_json::{Value, json};

use super::render;

const NOW: &str = "2026-03-01T12:00:00Z";

fn pod(phase: &str, ready: bool, containers: &[Value]) -> Value {
    json!({
        "namespace": "default", "name": "web", "uid": "u1", "time": NOW, "phase": phase,
        "since": "2026-03-01T11:00:00Z", "ready": ready, "readySince": "2026-03-01T11:55:00Z",
        "containers": containers,
    })
}

fn container(name: &str, kind: &str, state: impl Into<Value>) -> Value {
    let state = state.into();
    json!({ "name": name, "kind": kind, "state": state, "ready": false, "started": false,
            "restarts": 0 })
}

fn running(seconds: &str) -> Value {
    json!({ "state": "running", "since": format!("2026-03-01T11:59:{seconds}Z") })
}

fn waiting(reason: &str) -> Value {
    json!({ "state": "waiting", "reason": reason })
}

fn ended(code: i32) -> Value {
    json!({ "state": "ended", "at": "2026-03-01T11:59:58Z", "exitCode": code })
}

fn up(name: &str) -> Value {
    let mut container = container(name, "regular", running("00"));
    container["ready"] = true.into();
    container["started"] = true.into();
    container
}

fn end(code: i32) -> Value {
    json!({ "containerID": "c1", "restartCount": 3, "startedAt": "2026-03-01T11:59:53Z",
            "finishedAt": "2026-03-01T11:59:58Z", "exitCode": code })
}

/// Sets fields of an object.
fn with(mut object: Value, fields: Value) -> Value {
    let Value::Object(fields) = fields else {
        panic!("{fields} has no fields");
    };
    for (key, value) in fields {
        object[key] = value;
    }
    object
}

fn text(pod: Value) -> String {
    render(&serde_json::from_value(pod).unwrap())
}

fn headline(pod: Value) -> String {
    let text = text(pod);
    let line = text.lines().next().unwrap();
    line.strip_prefix("pod default/web ").unwrap().to_owned()
}

#[test]
fn what_an_edit_of_the_manifest_does_is_told_before_during_and_after() {
    let lines = |edits: Value| {
        let text = text(with(
            pod("Running", true, &[up("web")]),
            json!({ "manifestEdits": edits }),
        ));
        let told = |line: &&str| line.contains("its manifest") && line.starts_with("  ");
        text.lines()
            .filter(told)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let replaces =
        "  an edit of its manifest replaces the whole pod (rubelet.staticPodEdits: Replace)";
    assert_eq!(
        lines(json!({ "mode": "InPlace" })),
        [
            "  an edit of its manifest restarts only what it concerns (rubelet.staticPodEdits: InPlace)"
        ]
    );
    assert_eq!(lines(json!({ "mode": "Replace" })), [replaces]);
    let replaced = json!({ "uid": "u0", "at": "2026-03-01T11:59:55Z" });
    assert_eq!(
        lines(json!({ "mode": "Replace", "replaced": replaced })),
        [
            "  took the place of pod u0 5 s ago: its manifest was edited, or removed and written again",
            replaces
        ]
    );
    let going = with(
        pod("Running", true, &[up("web")]),
        json!({
            "ending": { "since": "2026-03-01T11:59:42Z", "graceSeconds": 30,
                        "killAt": "2026-03-01T12:00:12Z" },
            "manifestEdits": { "mode": "Replace", "beingReplaced": true },
        }),
    );
    assert_eq!(
        headline(going.clone()),
        "is ending since 18 s: what still runs gets SIGKILL in 12 s (grace 30 s); \
         then its manifest starts another one"
    );
    assert!(
        text(going).contains("  another pod takes its place when it is gone: its manifest was")
    );
}

#[test]
fn a_crashing_container_is_explained_to_the_last_line_of_its_log() {
    let crashing = with(
        container("web", "regular", waiting("CrashLoopBackOff")),
        json!({
            "restarts": 3,
            "nextTry": "2026-03-01T12:00:37.2Z",
            "backOff": { "delaySeconds": 40, "resetSeconds": 600 },
            "ends": [
                with(end(1), json!({ "reason": "Error", "log": ["starting", "panic: no config"] })),
                {
                    "containerID": "c0", "restartCount": 2, "startedAt": "2026-03-01T11:50:00Z",
                    "finishedAt": "2026-03-01T11:59:00Z", "exitCode": 143, "signal": "SIGTERM",
                    "message": "bye", "stoppedBecause": "it failed its liveness probe",
                },
            ],
        }),
    );
    let mut crashing = crashing;
    crashing["state"]["message"] = "back-off 40s restarting failed container=web".into();
    let side = with(
        up("side"),
        json!({ "probes": [{
            "kind": "readiness", "outcome": "Success", "last": "Success", "inARow": 30,
            "failureThreshold": 3,
            "at": "2026-03-01T11:59:55Z", "latencyMillis": 4, "late": 2,
            "next": "2026-03-01T12:00:05Z",
        }] }),
    );
    let mut pod = pod("Running", false, &[crashing, side]);
    pod["plan"] = json!(["container web is in back-off until 2026-03-01T12:00:37Z"]);
    assert_eq!(
        text(pod),
        "\
pod default/web is not ready: container web is waiting 38 s before restart 4, because it ended 2 s ago with exit code 1
  phase Running for 1 h (since 2026-03-01T11:00:00Z)
  not ready for 5 min (since 2026-03-01T11:55:00Z)
  container web: waiting, CrashLoopBackOff
    | back-off 40s restarting failed container=web
    restarted 3 times
    next try in 38 s (2026-03-01T12:00:37Z)
    back-off 40 s after an exit; it is reset after 10 min of running
    instance 3 ran 5 s and ended 2 s ago with exit code 1
      | starting
      | panic: no config
    instance 2 ran 9 min and ended 1 min ago with exit code 143 (SIGTERM); the agent stopped it, as it failed its liveness probe
      | bye
  container side: running for 1 min, ready
    readiness probe passes, 30 in a row, the last 5 s ago in 4 ms; next in 5 s; the agent was late twice
  last plan: container web is in back-off until 2026-03-01T12:00:37Z
"
    );
}

#[test]
fn an_instance_that_ended_at_once_ran_for_less_than_a_second() {
    let mut short = end(1);
    short["startedAt"] = short["finishedAt"].clone();
    let waits = container("web", "regular", waiting("CrashLoopBackOff"));
    let text = text(pod(
        "Running",
        false,
        &[with(waits, json!({ "ends": [short] }))],
    ));
    let line = "instance 3 ran less than 1 s and ended 2 s ago with exit code 1\n";
    assert!(text.contains(line), "{text}");
}

#[test]
fn the_progress_of_a_copy_of_volumes_is_shown() {
    let copy = |begun| {
        let waits = container("web", "regular", waiting("ContainerCreating"));
        let copy = json!({ "seconds": 75, "begun": begun, "files": 340, "bytes": 1_200_000_000 });
        pod(
            "Pending",
            false,
            &[with(waits, json!({ "volumeCopy": copy }))],
        )
    };
    let line = "the volumes of its image have been copied for 1 min 15 s: 340 files, 1.20GB so far";
    let text = text(copy(true));
    assert!(text.contains(&format!("    {line}\n")), "{text}");
    assert_eq!(
        headline(copy(true)),
        format!("is not ready: container web is being created, and {line}")
    );
    assert_eq!(
        headline(copy(false)),
        "is not ready: container web is being created, and the volumes of its image have been \
         waiting for 1 min 15 s until those of other containers are copied"
    );
}

#[test]
fn what_the_api_server_did_not_confirm_is_named() {
    let mut old = pod("Running", true, &[up("web")]);
    old["unconfirmed"] = json!(["the pod itself", "secret \"login\""]);
    let text = text(old);
    let line =
        "  not confirmed by the API server, used as known last: the pod itself, secret \"login\"\n";
    assert!(text.contains(line), "{text}");
}

#[test]
fn a_pod_that_ends_says_when_the_rest_is_killed() {
    let mut going = pod("Running", false, &[up("web")]);
    going["ending"] = json!({ "since": "2026-03-01T11:59:42Z", "graceSeconds": 30,
                              "killAt": "2026-03-01T12:00:12Z" });
    assert_eq!(
        text(going.clone()),
        "\
pod default/web is ending since 18 s: what still runs gets SIGKILL in 12 s (grace 30 s)
  phase Running for 1 h (since 2026-03-01T11:00:00Z)
  not ready for 5 min (since 2026-03-01T11:55:00Z)
  ending since 2026-03-01T11:59:42Z, 18 s ago; grace 30 s; SIGKILL in 12 s (2026-03-01T12:00:12Z)
  container web: running for 1 min, ready
"
    );
    going["time"] = "2026-03-01T12:00:15Z".into();
    assert_eq!(
        headline(going.clone()),
        "is ending: its grace of 30 s is over since 3 s, and what still runs is being killed"
    );
    going["teardown"] = json!({ "reason": "FailedKillPod", "message": "error killing container",
                                "at": "2026-03-01T12:00:14Z", "nextTry": "2026-03-01T12:00:18Z" });
    assert_eq!(
        headline(going.clone()),
        "is ending, but something could not be stopped or removed: error killing container; next try in 3 s"
    );
    going["teardown"] = Value::Null;
    going["containers"] = json!([container("web", "regular", ended(0))]);
    assert_eq!(
        headline(going),
        "is ending: its containers have ended, the rest of it is being removed"
    );
}

#[test]
fn the_headline_names_the_one_thing_that_keeps_a_pod_back() {
    let not_ready = |containers: &[Value]| headline(pod("Running", false, containers));
    let pending = |containers: &[Value]| headline(pod("Pending", false, containers));
    let pull = json!({
        "nextTry": "2026-03-01T12:00:20Z",
        "failedStart": { "reason": "ErrImagePull", "message": "no such image\nat all",
                         "at": "2026-03-01T11:59:58Z", "nextTry": "2026-03-01T12:00:20Z" },
    });
    for (found, expected) in [
        (
            not_ready(&[
                up("side"),
                with(container("web", "regular", waiting("ErrImagePull")), pull),
            ]),
            "is not ready: container web cannot start: ErrImagePull: no such image; next try in 20 s",
        ),
        (
            pending(&[container("web", "regular", waiting("ContainerCreating"))]),
            "is not ready: container web has not been started yet",
        ),
        (
            pending(&[
                container("setup", "init", running("40")),
                container("web", "regular", waiting("PodInitializing")),
            ]),
            "is not ready: init container setup has been running for 20 s, and the others wait for its end",
        ),
        (
            pending(&[
                with(
                    container("setup", "init", waiting("CrashLoopBackOff")),
                    json!({ "restarts": 1, "nextTry": "2026-03-01T12:00:08Z", "ends": [end(2)] }),
                ),
                container("web", "regular", waiting("PodInitializing")),
            ]),
            "is not ready: init container setup is waiting 8 s before restart 2, because it ended 2 s ago with exit code 2",
        ),
        (
            pending(&[
                with(
                    container("proxy", "sidecar", running("55")),
                    json!({ "hasStartupProbe": true }),
                ),
                container("web", "regular", waiting("PodInitializing")),
            ]),
            "is not ready: sidecar proxy has been running for 5 s, but its startup probe has not succeeded yet",
        ),
        (
            not_ready(&[with(
                container("web", "regular", running("55")),
                json!({ "started": true, "probes": [{
                    "kind": "readiness", "outcome": "Failure", "last": "Failure", "inARow": 3,
                    "failureThreshold": 3, "at": "2026-03-01T11:59:58Z", "latencyMillis": 2,
                    "output": "HTTP probe failed with statuscode: 503",
                }] }),
            )]),
            "is not ready: container web has been running for 5 s, but its readiness probe failed 3 times in a row, the last time 2 s ago: HTTP probe failed with statuscode: 503",
        ),
        (
            not_ready(&[with(
                container("web", "regular", running("59")),
                json!({ "started": true, "probes": [{
                    "kind": "readiness", "outcome": "Failure", "inARow": 0, "failureThreshold": 3,
                    "latencyMillis": 0,
                }] }),
            )]),
            "is not ready: container web has been running for 1 s, but its readiness probe has not been tried yet",
        ),
        (
            not_ready(&[with(
                container("web", "regular", running("50")),
                json!({ "postStartRuns": true }),
            )]),
            "is not ready: container web has been running for 10 s, and its postStart hook has not ended yet",
        ),
        (
            not_ready(&[up("side"), container("web", "regular", ended(0))]),
            "is not ready: container web ended 2 s ago with exit code 0 and is not started again",
        ),
        (
            not_ready(&[with(
                container("web", "regular", waiting("CrashLoopBackOff")),
                json!({ "ends": [with(end(137), json!({ "reason": "OOMKilled", "signal": "SIGKILL" }))],
                        "nextTry": "2026-03-01T12:00:10Z",
                        "restartAsked": "2026-03-01T11:59:59Z" }),
            )]),
            "is not ready: container web is waiting 10 s before restart 1, because it ran out of memory 2 s ago; exit code 137 (SIGKILL); its restart was asked for 1 s ago",
        ),
        (
            not_ready(&[with(
                container("web", "regular", waiting("RestartingAllContainers")),
                json!({}),
            )]),
            "is not ready: container web is waiting: RestartingAllContainers",
        ),
    ] {
        assert_eq!(found, expected);
    }
}

#[test]
fn pods_without_a_container_in_the_way_are_explained_too() {
    let gated = |gate: Value| {
        let mut pod = pod("Running", false, &[up("web")]);
        pod["readinessGates"] = json!([gate, { "condition": "x", "status": "True" }]);
        headline(pod)
    };
    let mut no_sandbox = pod(
        "Pending",
        false,
        &[container("web", "regular", waiting(""))],
    );
    no_sandbox["sandbox"] = json!({
        "reason": "FailedCreatePodSandBox", "message": "Failed to create pod sandbox: no network",
        "at": "2026-03-01T11:59:58Z", "nextTry": "2026-03-01T12:00:04Z",
    });
    let mut planned = pod("Pending", false, &[]);
    planned["plan"] = json!(["the pod has no sandbox"]);
    let mut deadline = pod("Failed", false, &[container("web", "regular", ended(137))]);
    deadline["reason"] = "DeadlineExceeded".into();
    deadline["message"] = "Pod was active on the node longer than the specified deadline".into();
    let restarted = with(up("web"), json!({ "ends": [end(139)] }));
    let restarted = with(
        restarted,
        json!({ "ends": [with(end(139), json!({ "signal": "SIGSEGV" }))] }),
    );
    for (found, expected) in [
        (
            gated(json!({ "condition": "lb/up" })),
            "is not ready: all its containers are, but the condition lb/up, which is a readiness gate, is not set",
        ),
        (
            gated(
                json!({ "condition": "lb/up", "status": "False", "reason": "Wait", "message": "not yet" }),
            ),
            "is not ready: all its containers are, but the condition lb/up, which is a readiness gate, is False (Wait: not yet)",
        ),
        (
            headline(no_sandbox),
            "cannot start: Failed to create pod sandbox: no network; next try in 4 s",
        ),
        (
            headline(planned),
            "is not ready yet: the pod has no sandbox",
        ),
        (
            headline(pod("Pending", false, &[])),
            "is not ready yet: the agent has not looked at it",
        ),
        (
            headline(pod(
                "Succeeded",
                false,
                &[container("job", "regular", ended(0))],
            )),
            "has succeeded: its containers ended with exit code 0, the last one 1 h ago, and none is started again",
        ),
        (
            headline(pod(
                "Failed",
                false,
                &[container("job", "regular", ended(3))],
            )),
            "has failed: container job ended 2 s ago with exit code 3 and is not started again",
        ),
        (
            headline(deadline),
            "has failed: DeadlineExceeded: Pod was active on the node longer than the specified deadline",
        ),
        (
            headline(pod("Running", true, &[up("web")])),
            "is ready for 5 min, and no container of it was restarted",
        ),
        (
            headline(pod("Running", true, &[restarted])),
            "is ready for 5 min; container web was last restarted because it ended 2 s ago with exit code 139 (SIGSEGV)",
        ),
    ] {
        assert_eq!(found, expected);
    }
}

#[test]
fn evidence_has_gates_failed_starts_logs_and_the_sandbox() {
    let mut pod = pod(
        "Pending",
        false,
        &[with(
            container("web", "ephemeral", waiting("")),
            json!({
                "failedStart": { "reason": "CreateContainerError", "message": "a\nb",
                                 "at": "2026-03-01T11:59:58Z", "nextTry": "2026-03-01T12:00:01Z" },
                "log": ["one", "two"],
                "ends": [{ "containerID": "c", "restartCount": 0, "exitCode": 128,
                           "finishedAt": "2026-03-01T11:59:58Z", "reason": "StartError" }],
                "probes": [{ "kind": "liveness", "outcome": "Unknown", "inARow": 0,
                             "failureThreshold": 3, "latencyMillis": 0 }],
            }),
        )],
    );
    pod["sandbox"] = json!({ "reason": "FailedCreatePodSandBox", "message": "no network",
                             "at": "2026-03-01T11:59:58Z", "nextTry": "2026-03-01T12:00:04Z" });
    pod["readinessGates"] = json!([{ "condition": "a" },
        { "condition": "b", "status": "False", "reason": "R", "message": "two\nlines" }]);
    assert_eq!(
        text(pod),
        "\
pod default/web cannot start: no network; next try in 4 s
  phase Pending for 1 h (since 2026-03-01T11:00:00Z)
  not ready for 5 min (since 2026-03-01T11:55:00Z)
  sandbox failed 2 s ago: FailedCreatePodSandBox; next try in 4 s
    | no network
  ephemeral container web: waiting
    start failed 2 s ago: CreateContainerError
      | a
      | b
    liveness probe was not tried yet
    instance 0 never ran; its start failed 2 s ago with exit code 128, StartError
    last lines of its log
      | one
      | two
  readiness gate a is not set
  readiness gate b is False: R: two lines
"
    );
}

#[test]
fn probes_are_reported_by_their_last_attempt_and_by_what_counts() {
    let told = |last: &str, outcome: &str, in_a_row: u32| {
        let probe = json!({
            "kind": "readiness", "outcome": outcome, "last": last, "inARow": in_a_row,
            "failureThreshold": 3, "at": "2026-03-01T11:59:58Z", "latencyMillis": 7,
        });
        let container = with(
            container("web", "regular", running("55")),
            json!({ "started": true, "probes": [probe] }),
        );
        let text = text(pod("Running", false, &[container]));
        let line = |part: &str| text.lines().find(|line| line.contains(part)).unwrap();
        let head = line("is not ready: ").split(", but its ").nth(1).unwrap();
        let row = line("    readiness probe").trim().to_owned();
        (head.to_owned(), row)
    };
    for (last, outcome, in_a_row, head, row) in [
        (
            "Failure",
            "Success",
            1,
            "readiness probe failed 2 s ago",
            "readiness probe fails, 1 in a row, the last 2 s ago in 7 ms; it takes 3 to count",
        ),
        (
            "Success",
            "Failure",
            2,
            "readiness probe has passed twice, which is not enough yet",
            "readiness probe passes, 2 in a row, the last 2 s ago in 7 ms; not enough to count yet",
        ),
        (
            "Errored",
            "Failure",
            2,
            "readiness probe could not be tried 2 s ago",
            "readiness probe could not be tried, the last 2 s ago in 7 ms",
        ),
        (
            "Late",
            "Failure",
            2,
            "readiness probe was tried too late to count, 2 s ago",
            "readiness probe was tried too late to count, the last 2 s ago in 7 ms",
        ),
    ] {
        assert_eq!(
            told(last, outcome, in_a_row),
            (head.to_owned(), row.to_owned())
        );
    }
}

#[test]
fn text_from_elsewhere_can_not_steer_the_terminal() {
    let mut pod = pod("Failed", false, &[]);
    pod["message"] = "\x1b]0;owned\x07".into();
    let text = text(pod);
    assert!(
        text.contains("^[]0;owned^G") && !text.contains('\x1b'),
        "{text}"
    );
}
