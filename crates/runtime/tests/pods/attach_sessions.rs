//! Sessions with the first process of a container.

use rubelet_cri::{CriResult, RuntimeService, v1};
use rubelet_runtime::EmbeddedRuntime;
use rubelet_streaming::{RemoteProcess, SessionExit, Sessions, TerminalSize};

use crate::fixture::{
    Fixture, create, ended, exit_code, read_all, read_exact, remove_pod, run_pod, send, shell,
    start, wait_for,
};

/// Attaches to a container. The CRI has a call of that name, too.
async fn attach(runtime: &EmbeddedRuntime, request: v1::AttachRequest) -> CriResult<RemoteProcess> {
    Sessions::attach(runtime, request).await
}

fn request(container: &str, streams: &str) -> v1::AttachRequest {
    v1::AttachRequest {
        container_id: container.to_owned(),
        tty: streams.contains('t'),
        stdin: streams.contains('i'),
        stdout: streams.contains('o'),
        stderr: streams.contains('e'),
    }
}

fn with_stdin(script: &str) -> v1::ContainerConfig {
    v1::ContainerConfig {
        stdin: true,
        ..shell("main", script)
    }
}

pub(crate) async fn a_client_that_never_reads_is_told_and_holds_up_nobody(fixture: &Fixture) {
    const PIECE: usize = 256 << 10;
    let runtime = fixture.runtime().await;
    let pod = fixture.host_network("attach");
    let sandbox = run_pod(&runtime, &pod).await;
    let script = format!("while read line; do head -c {PIECE} /dev/zero; done");
    let container = create(&runtime, &sandbox, &pod, with_stdin(&script)).await;
    start(&runtime, &container).await;
    let mut fast = attach(&runtime, request(&container, "ioe")).await.unwrap();
    let mut never = attach(&runtime, request(&container, "oe")).await.unwrap();
    for _ in 0..20 {
        send(&mut fast, b"go\n").await;
        read_exact(&mut fast.stdout, PIECE).await;
    }
    let told = never.exit.await.unwrap_err();
    assert!(told.message.contains("read too slowly"), "{told}");
    let begun = read_all(&mut never.stdout).await.len();
    assert!((1 << 20..20 * PIECE).contains(&begun), "{begun}");
    assert!(never.stderr.take().is_some());
    fast.stdin.as_mut().unwrap().close().await.unwrap();
    // Not `stdin_once`: the input stays open for the next client.
    let mut next = attach(&runtime, request(&container, "io")).await.unwrap();
    send(&mut next, b"go\n").await;
    read_exact(&mut next.stdout, PIECE).await;
    read_exact(&mut fast.stdout, PIECE).await;
    remove_pod(&runtime, &sandbox).await;
    for mut process in [fast, next] {
        assert_eq!(read_all(&mut process.stdout).await, b"");
        assert_eq!(process.exit.await.unwrap(), SessionExit::Code(0));
    }
}

pub(crate) async fn the_input_of_a_container_ends_with_its_first_client(fixture: &Fixture) {
    let runtime = fixture.runtime().await;
    let pod = fixture.host_network("once");
    let sandbox = run_pod(&runtime, &pod).await;
    let mut config = with_stdin("cat; echo end; echo err >&2; exit 5");
    config.stdin_once = true;
    let container = create(&runtime, &sandbox, &pod, config).await;
    start(&runtime, &container).await;
    let mut process = attach(&runtime, request(&container, "ioe")).await.unwrap();
    send(&mut process, b"hello\n").await;
    process.stdin.as_mut().unwrap().close().await.unwrap();
    assert_eq!(read_all(&mut process.stdout).await, b"hello\nend\n");
    assert_eq!(read_all(&mut process.stderr).await, b"err\n");
    // The end of an attachment is no exit code.
    assert_eq!(exit_code(process.exit).await, 0);
    assert_eq!(ended(&runtime, &container).await.exit_code, 5);
    remove_pod(&runtime, &sandbox).await;
}

pub(crate) async fn a_terminal_is_resized_and_shared(fixture: &Fixture) {
    let runtime = fixture.runtime().await;
    let pod = fixture.host_network("terminal");
    let sandbox = run_pod(&runtime, &pod).await;
    let mut config = with_stdin("read line; stty size; echo err >&2; read line");
    config.tty = true;
    let container = create(&runtime, &sandbox, &pod, config).await;
    start(&runtime, &container).await;
    let mut first = attach(&runtime, request(&container, "iot")).await.unwrap();
    // Without a terminal on its own side.
    let mut second = attach(&runtime, request(&container, "oe")).await.unwrap();
    let resize = first.resize.clone().unwrap();
    for width in [80, 101] {
        resize(TerminalSize { width, height: 23 });
    }
    // After the resize, which goes another way.
    attach(&runtime, request(&container, "o")).await.unwrap();
    send(&mut first, b"go\n").await;
    for process in [&mut first, &mut second] {
        let wanted = "go\r\n23 101\r\nerr\r\n";
        let seen = read_exact(&mut process.stdout, wanted.len()).await;
        assert_eq!(String::from_utf8(seen).unwrap(), wanted);
    }
    assert_eq!(read_all(&mut second.stderr).await, b"");
    send(&mut first, b"end\n").await;
    assert_eq!(exit_code(second.exit).await, 0);
    remove_pod(&runtime, &sandbox).await;
}

pub(crate) async fn what_a_container_does_not_have_is_refused(fixture: &Fixture) {
    let runtime = fixture.runtime().await;
    let pod = fixture.host_network("lacks");
    let sandbox = run_pod(&runtime, &pod).await;
    let container = create(&runtime, &sandbox, &pod, shell("main", "sleep 1000")).await;
    let refused = async |id: &str, streams| match attach(&runtime, request(id, streams)).await {
        Ok(_) => panic!("it is attached"),
        Err(error) => error,
    };
    let early = refused(&container, "o").await;
    assert!(early.message.contains("CONTAINER_CREATED"), "{early}");
    start(&runtime, &container).await;
    for (streams, words) in [
        ("io", "has no standard input"),
        ("ot", "has no terminal"),
        ("oet", "tty and stderr cannot both be true"),
        ("", "one of stdin, stdout, or stderr must be set"),
    ] {
        let error = refused(&container, streams).await;
        assert!(error.message.contains(words), "{error}");
    }
    assert!(refused("none", "o").await.is_not_found());
    remove_pod(&runtime, &sandbox).await;
}

pub(crate) async fn clients_that_go_away_leave_nothing(fixture: &Fixture) {
    let runtime = fixture.runtime().await;
    let pod = fixture.host_network("left");
    let sandbox = run_pod(&runtime, &pod).await;
    let container = create(&runtime, &sandbox, &pod, with_stdin("cat")).await;
    start(&runtime, &container).await;
    let status = v1::PodSandboxStatusRequest {
        pod_sandbox_id: sandbox.clone(),
        verbose: true,
    };
    let status = runtime.pod_sandbox_status(status).await.unwrap();
    let info: serde_json::Value = serde_json::from_str(&status.info["info"]).unwrap();
    let shim = info["pid"].as_i64().unwrap();
    let descriptors = || {
        let count = |process: String| {
            let directory = format!("/proc/{process}/fd");
            std::fs::read_dir(directory).unwrap().count()
        };
        (count("self".to_owned()), count(shim.to_string()))
    };
    drop(attach(&runtime, request(&container, "ioe")).await.unwrap());
    // The shim holds its cgroup open for its first second.
    wait_for("the shim is in its cgroup", async || {
        let cgroups = std::fs::read_to_string(format!("/proc/{shim}/cgroup")).unwrap();
        cgroups.lines().all(|line| line.contains("/shims/"))
    })
    .await;
    let mut before = descriptors();
    wait_for("the first session is gone", async || {
        std::mem::replace(&mut before, descriptors()) == before
    })
    .await;
    for _ in 0..100 {
        drop(attach(&runtime, request(&container, "ioe")).await.unwrap());
    }
    wait_for("no descriptors are left", async || {
        let (own, shims) = descriptors();
        own <= before.0 && shims <= before.1
    })
    .await;
    remove_pod(&runtime, &sandbox).await;
}
