//! Commands in containers, with streams and with terminals.

use rubelet_cri::{CriResult, RuntimeService, v1};
use rubelet_runtime::EmbeddedRuntime;
use rubelet_streaming::{RemoteProcess, SessionExit, Sessions, TerminalSize};
use tokio::time::timeout;

use crate::fixture::{
    Fixture, PATIENCE, create, ended, exit_code, read_all, read_until, remove_pod, run_pod,
    run_pod_with, send, shell, start, wait_for,
};

/// Starts a command. The CRI has a call of that name, too.
async fn exec(runtime: &EmbeddedRuntime, request: v1::ExecRequest) -> CriResult<RemoteProcess> {
    Sessions::exec(runtime, request).await
}

fn request(container: &str, streams: &str, script: &str) -> v1::ExecRequest {
    v1::ExecRequest {
        container_id: container.to_owned(),
        cmd: ["/bin/sh", "-c", script].map(str::to_owned).into(),
        tty: streams.contains('t'),
        stdin: streams.contains('i'),
        stdout: streams.contains('o'),
        stderr: streams.contains('e'),
    }
}

/// How many processes in a container have a command line that matches.
async fn processes(runtime: &EmbeddedRuntime, container: &str, pattern: &str) -> u32 {
    let request = v1::ExecSyncRequest {
        container_id: container.to_owned(),
        cmd: ["/bin/sh", "-c", &format!("ps | grep -c '{pattern}'")]
            .map(str::to_owned)
            .into(),
        timeout: 10,
    };
    let answer = runtime.exec_sync(request).await.unwrap();
    let text = String::from_utf8(answer.stdout).unwrap();
    text.trim().parse().unwrap()
}

/// A pod with a container that sleeps: its sandbox and container.
async fn sleeper(fixture: &Fixture, runtime: &EmbeddedRuntime, name: &str) -> (String, String) {
    let pod = fixture.host_network(name);
    let sandbox = run_pod(runtime, &pod).await;
    let container = create(runtime, &sandbox, &pod, shell("main", "sleep 1000")).await;
    start(runtime, &container).await;
    (sandbox, container)
}

/// In each kind of container: of the embedded runtime, with a user namespace, of an external runtime.
pub(crate) async fn streams_and_terminals_work_in_each_kind_of_container(fixture: &Fixture) {
    let runtime = fixture.runtime().await;
    for (name, handler) in [("plain", ""), ("userns", ""), ("external", "runc")] {
        println!("{name}");
        let mut pod = fixture.pod(name);
        let mut config = shell("main", "sleep 1000");
        if name == "userns" {
            let options = fixture.user_namespace(&mut pod);
            let security = v1::LinuxContainerSecurityContext {
                namespace_options: Some(options),
                ..Default::default()
            };
            config.linux = Some(v1::LinuxContainerConfig {
                security_context: Some(security),
                ..Default::default()
            });
        }
        let sandbox = run_pod_with(&runtime, &pod, handler).await;
        let container = create(&runtime, &sandbox, &pod, config).await;
        start(&runtime, &container).await;
        streams(&runtime, &container).await;
        terminal(&runtime, &container).await;
        remove_pod(&runtime, &sandbox).await;
    }
}

async fn streams(runtime: &EmbeddedRuntime, container: &str) {
    let script = "cat; echo err >&2; echo again > /dev/stdout; exit 7";
    let mut process = exec(runtime, request(container, "ioe", script))
        .await
        .unwrap();
    assert!(process.resize.is_none());
    send(&mut process, b"fed\n").await;
    // Half-closed: the output goes on.
    process.stdin.as_mut().unwrap().close().await.unwrap();
    assert_eq!(read_all(&mut process.stdout).await, b"fed\nagain\n");
    assert_eq!(read_all(&mut process.stderr).await, b"err\n");
    assert_eq!(exit_code(process.exit).await, 7);
    // Streams that nobody asked for lead nowhere.
    let mut process = exec(
        runtime,
        request(container, "e", "cat; echo out; echo err >&2"),
    )
    .await
    .unwrap();
    assert!(process.stdin.is_none() && process.stdout.is_none());
    assert_eq!(read_all(&mut process.stderr).await, b"err\n");
    assert_eq!(exit_code(process.exit).await, 0);
}

async fn terminal(runtime: &EmbeddedRuntime, container: &str) {
    let script = "echo $TERM; read line; stty size; echo err >&2; exit 3";
    let mut process = exec(runtime, request(container, "iot", script))
        .await
        .unwrap();
    assert!(process.stderr.is_none());
    read_until(&mut process.stdout, "xterm").await;
    let resize = process.resize.clone().unwrap();
    resize(TerminalSize {
        width: 101,
        height: 23,
    });
    send(&mut process, b"go\n").await;
    let seen = String::from_utf8(read_all(&mut process.stdout).await).unwrap();
    assert!(seen.contains("23 101\r\nerr\r\n"), "{seen:?}");
    assert_eq!(exit_code(process.exit).await, 3);
    // Nobody reads this terminal, and the command does not wait for a reader.
    let process = exec(runtime, request(container, "it", "seq 1 10000; exit 4"))
        .await
        .unwrap();
    assert!(process.stdout.is_none());
    assert_eq!(exit_code(process.exit).await, 4);
}

pub(crate) async fn a_slow_reader_loses_nothing_of_a_long_output(fixture: &Fixture) {
    let runtime = fixture.runtime().await;
    let (sandbox, container) = sleeper(fixture, &runtime, "slow").await;
    let script = "exec head -c 5242880 /dev/zero";
    let mut process = exec(&runtime, request(&container, "o", script))
        .await
        .unwrap();
    // It waits for its reader.
    for _ in 0..3 {
        assert_eq!(
            processes(&runtime, &container, "[h]ead -c 5242880").await,
            1
        );
    }
    assert_eq!(read_all(&mut process.stdout).await.len(), 5 << 20);
    assert_eq!(exit_code(process.exit).await, 0);
    remove_pod(&runtime, &sandbox).await;
}

pub(crate) async fn a_child_in_the_background_does_not_hold_up_the_session(fixture: &Fixture) {
    let runtime = fixture.runtime().await;
    let (sandbox, container) = sleeper(fixture, &runtime, "background").await;
    for streams in ["oe", "ot"] {
        let script = "trap '' HUP; sleep 500 & echo there; exit 2";
        let mut process = exec(&runtime, request(&container, streams, script))
            .await
            .unwrap();
        let output = read_all(&mut process.stdout).await;
        assert_eq!(String::from_utf8(output).unwrap().trim_end(), "there");
        assert_eq!(exit_code(process.exit).await, 2);
    }
    assert_eq!(processes(&runtime, &container, "[s]leep 500").await, 2);
    remove_pod(&runtime, &sandbox).await;
}

pub(crate) async fn a_command_that_cannot_run_says_why(fixture: &Fixture) {
    let runtime = fixture.runtime().await;
    let (sandbox, container) = sleeper(fixture, &runtime, "refused").await;
    let refused = async |request| match exec(&runtime, request).await {
        Ok(_) => panic!("it was started"),
        Err(error) => error,
    };
    for streams in ["ioe", "iot"] {
        let mut missing = request(&container, streams, "");
        missing.cmd = vec!["/no/such/program".to_owned()];
        let error = refused(missing).await;
        let sync = v1::ExecSyncRequest {
            container_id: container.clone(),
            cmd: vec!["/no/such/program".to_owned()],
            timeout: 5,
        };
        let sync = runtime.exec_sync(sync).await.unwrap_err();
        assert!(error.message.contains("/no/such/program"), "{error}");
        assert_eq!((error.kind, error.message), (sync.kind, sync.message));
    }
    assert!(refused(request("none", "o", "")).await.is_not_found());
    for (id, streams, words) in [
        ("", "o", "missing required container_id"),
        (&*container, "oet", "tty and stderr cannot both be true"),
        (
            &*container,
            "t",
            "one of stdin, stdout, or stderr must be set",
        ),
    ] {
        assert_eq!(refused(request(id, streams, "")).await.message, words);
    }
    let stop = v1::StopContainerRequest {
        container_id: container.clone(),
        timeout: 0,
    };
    runtime.stop_container(stop).await.unwrap();
    let error = refused(request(&container, "o", "true")).await;
    assert!(error.message.contains("CONTAINER_EXITED"), "{error}");
    remove_pod(&runtime, &sandbox).await;
}

pub(crate) async fn a_client_that_goes_away_kills_nothing_and_leaves_nothing(fixture: &Fixture) {
    let runtime = fixture.runtime().await;
    let (sandbox, container) = sleeper(fixture, &runtime, "gone").await;
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    // A first command makes what is kept.
    assert_eq!(processes(&runtime, &container, "[s]leep 1000").await, 1);
    let before = descriptors();
    for _ in 0..10 {
        // Ends with its input.
        drop(
            exec(&runtime, request(&container, "ioe", "exec cat"))
                .await
                .unwrap(),
        );
        // Ends with its terminal.
        drop(
            exec(&runtime, request(&container, "iot", "exec sleep 600"))
                .await
                .unwrap(),
        );
    }
    // Goes on.
    drop(
        exec(&runtime, request(&container, "oe", "exec sleep 700"))
            .await
            .unwrap(),
    );
    // Those of the first command may have been open still.
    wait_for("no descriptors are left", async || descriptors() <= before).await;
    wait_for("commands without input or terminal end", async || {
        processes(&runtime, &container, "[s]leep 600\\|[ ]cat$").await == 0
    })
    .await;
    assert_eq!(processes(&runtime, &container, "[s]leep 700").await, 1);
    remove_pod(&runtime, &sandbox).await;
}

pub(crate) async fn a_session_ends_with_its_container(fixture: &Fixture) {
    let runtime = fixture.runtime().await;
    let (sandbox, container) = sleeper(fixture, &runtime, "over").await;
    let mut process = exec(&runtime, request(&container, "ioe", "exec sleep 1000"))
        .await
        .unwrap();
    let stop = v1::StopContainerRequest {
        container_id: container.clone(),
        timeout: 0,
    };
    runtime.stop_container(stop).await.unwrap();
    ended(&runtime, &container).await;
    assert_eq!(read_all(&mut process.stdout).await, b"");
    let exit = timeout(PATIENCE, process.exit).await.unwrap();
    assert_eq!(exit.unwrap(), SessionExit::Code(137));
    remove_pod(&runtime, &sandbox).await;
}
