//! Many sessions of each kind, with each of their ends, leave nothing in the agent, its supervisors and the pod.

use std::cell::Cell;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use rubelet_streaming::{Duplex, PortDialer, RemoteProcess, SessionExit, Source, StdStreams};
use rubelet_testbed::agent::AgentBuilder;
use rubelet_testbed::manifest::{pod, shell, with};
use rubelet_testbed::runtime::Kind;
use rubelet_testbed::{Agent, TestRuntime, wait};
use serde_json::json;
use tokio::sync::Mutex;

use crate::held::HeldResources;
use crate::outside::states;
use crate::session_client::{CLOSE, PIPES, STDIN, STDOUT, SessionClient, until_shown};

/// Echoes the input of the container, and each connection to port 9000.
const SCRIPT: &str = "nc -ll -p 9000 -e cat & \
     while read -r line; do if [ \"$line\" = end ]; then exit; fi; echo \"got $line.\"; done";

const ECHO: u16 = 9000;
/// Whether the echo listens. A probe that connects could leave a zombie: BusyBox ignores SIGCHLD only after it has forked, and
/// the `cat` of a first connection that ends at once may have exited by then.
const LISTENS: &str = "grep -q ':2328 .* 0A ' /proc/net/tcp /proc/net/tcp6";
/// A port on which nothing listens.
const CLOSED: u16 = 9;

/// Sessions after which what is made once exists.
const WARM_UP: usize = 40;

/// Sessions at the same time.
const AT_A_TIME: usize = 8;

const TERMINAL: StdStreams = StdStreams { tty: true, ..PIPES };

/// A node with the pod `echo`.
struct Node {
    agent: Agent,
    runtime: TestRuntime,
}

impl Node {
    fn start(configure: impl FnOnce(AgentBuilder) -> AgentBuilder) -> Self {
        let runtime = TestRuntime::start().unwrap();
        // The shell does not wait until the echo listens.
        let command = ["sh", "-c", LISTENS];
        let probe = json!({ "exec": { "command": command }, "periodSeconds": 1 });
        let more = json!({ "stdin": true, "startupProbe": probe });
        let container = with(shell("main", SCRIPT), &more);
        let manifest = pod("echo", &json!({ "containers": [container] }));
        let builder = Agent::builder(&runtime).manifest("echo.yaml", manifest.to_string());
        let agent = configure(builder).start().unwrap();
        states::wait_all_ready(&agent, 1);
        Self { agent, runtime }
    }

    fn client(&self) -> SessionClient {
        SessionClient::new(&self.agent, "echo")
    }

    /// That many on the embedded runtime; others make a process or two for each.
    fn sessions(&self, embedded: usize) -> usize {
        match self.runtime.kind() {
            Kind::Embedded => embedded,
            Kind::Containerd | Kind::Crio => WARM_UP,
        }
    }

    /// Runs sessions, by their numbers, after which the agent must hold no more than before.
    fn leaves_nothing(&self, sessions: usize, session: &impl AsyncFn(&SessionClient, usize)) {
        let processes = HeldResources::of(&self.agent).processes;
        self.run(WARM_UP, session);
        let before = HeldResources::settled(&self.agent, processes);
        self.run(self.sessions(sessions), session);
        HeldResources::wait_no_more(&self.agent, before);
    }

    /// Runs sessions. At the end those that are still open are dropped with everything of the client.
    fn run(&self, sessions: usize, session: &impl AsyncFn(&SessionClient, usize)) {
        let client = self.client();
        let next = Cell::new(0);
        let some = async || {
            while next.get() < sessions {
                let number = next.replace(next.get() + 1);
                session(&client, number).await;
            }
        };
        let all = join_all((0..AT_A_TIME).map(|_| some()));
        client_runtime().block_on(all);
    }
}

fn client_runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().unwrap()
}

async fn send(session: &mut RemoteProcess, text: &str) {
    let stdin = session.stdin.as_mut().unwrap();
    stdin
        .write(Bytes::copy_from_slice(text.as_bytes()))
        .await
        .unwrap();
}

/// Reads output until it contains a text.
async fn shows(source: &mut dyn Source, text: &str) {
    let mut shown = String::new();
    while !shown.contains(text) {
        let bytes = source.read().await.unwrap().unwrap();
        shown += &String::from_utf8_lossy(&bytes);
    }
}

/// Waits for the end of the output and of the session.
async fn ends(mut session: RemoteProcess) -> SessionExit {
    let stdout = session.stdout.as_mut().unwrap();
    while stdout.read().await.unwrap().is_some() {}
    session.exit.await.unwrap()
}

#[test]
fn commands_on_terminals_leave_nothing() {
    let node = Node::start(|builder| builder);
    node.leaves_nothing(600, &async |client, number| {
        let mut session = client.exec("cat", TERMINAL).await;
        send(&mut session, "here\n").await;
        // What is typed, and what the command writes.
        shows(&mut **session.stdout.as_mut().unwrap(), "here\r\nhere\r\n").await;
        // Else the client disconnects.
        if number % 2 == 0 {
            send(&mut session, "\x04").await;
            assert_eq!(ends(session).await.code(), Ok(0));
        }
    });
}

#[test]
fn attachments_leave_nothing() {
    let node = Node::start(|builder| builder);
    let attached = async |client: &SessionClient, number: usize| {
        let mut session = client.attach().await;
        let (line, got) = (format!("{number}\n"), format!("got {number}."));
        let (stdin, stdout) = (session.stdin.as_mut(), session.stdout.as_mut());
        let (stdin, stdout) = (stdin.unwrap(), stdout.unwrap());
        let shown = shows(&mut **stdout, &got);
        until_shown(shown, async || {
            stdin.write(line.clone().into()).await.unwrap();
        })
        .await;
        session
    };
    node.leaves_nothing(1200, &async |client, number| {
        let mut session = attached(client, number).await;
        if number % 2 == 0 {
            session.stdin.as_mut().unwrap().close().await.unwrap();
        }
    });
    // The container ends below its attachments, and starts again.
    let before = HeldResources::of(&node.agent);
    let client = node.client();
    client_runtime().block_on(async {
        let open = (0..WARM_UP).map(|number| attached(&client, number));
        let mut open = join_all(open).await;
        send(&mut open[0], "end\n").await;
        for exit in join_all(open.into_iter().map(ends)).await {
            assert_eq!(exit.code(), Ok(0));
        }
    });
    states::wait_pod(&node.agent, "echo", "has started again", |pod| {
        pod["status"]["containerStatuses"][0]["restartCount"] == 1
    });
    HeldResources::wait_no_more(&node.agent, before);
}

#[test]
fn forwarded_ports_leave_nothing() {
    let node = Node::start(|builder| builder);
    let turn = Mutex::new(());
    node.leaves_nothing(300, &async |client, _| {
        let dialer = client.port_forward().await;
        let dialer = &*dialer;
        let mut refused = dialer.dial(CLOSED).await.unwrap();
        let connected = async || {
            let _turn = turn.lock().await;
            echo(dialer).await
        };
        let mut closed = connected().await;
        let open = [connected().await, connected().await];
        // The client closes one half, and the pod the other. The others are open when the client goes.
        closed.sink.close().await.unwrap();
        assert_eq!(closed.source.read().await.unwrap(), None);
        let error = refused.source.read().await.unwrap_err();
        assert!(error.to_string().contains("forwarding port 9 "), "{error}");
        drop(open);
    });
}

/// A connection to the echo that has said something. To be made one after the other: the program that listens has room for
/// few that it has not accepted, and the end of one that the kernel turned away may arrive a minute late.
async fn echo(dialer: &dyn PortDialer) -> Duplex {
    let mut connection = dialer.dial(ECHO).await.unwrap();
    connection.sink.write("here".into()).await.unwrap();
    shows(&mut *connection.source, "here").await;
    connection
}

#[test]
fn web_sockets_leave_nothing() {
    const V5: &str = "v5.channel.k8s.io";
    let node = Node::start(|builder| builder);
    let turn = Mutex::new(());
    node.leaves_nothing(900, &async |client, number| match number % 3 {
        0 => {
            let command = "exec?command=cat&stdin=true&stdout=true";
            let mut session = client.web_socket(command, V5).await;
            session.exchange((STDIN, b"here\n"), (STDOUT, "here")).await;
            if number % 2 == 0 {
                session.send(CLOSE, &[STDIN]).await;
                let status = session.ends().await;
                assert!(status.contains("Success"), "{status}");
            }
        }
        1 => {
            let mut session = client.web_socket("attach?stdin=true&stdout=true", V5).await;
            session
                .exchange((STDIN, b"here\n"), (STDOUT, "got here."))
                .await;
        }
        _ => {
            let ports = format!("portforward?ports={ECHO}");
            let _turn = turn.lock().await;
            let mut session = client.web_socket(&ports, "v4.channel.k8s.io").await;
            session.exchange((0, b"here"), (0, "here")).await;
        }
    });
}

#[test]
fn idle_sessions_leave_nothing() {
    // Sessions begin within that time.
    let time = format!("{}s", wait::patiently(Duration::from_secs(1)).as_secs());
    let node = Node::start(|builder| builder.config("streamingConnectionIdleTimeout", &*time));
    let why = format!("had no traffic for {time}");
    let told = |text: String| assert!(text.contains(&why), "{text}");
    let turn = Mutex::new(());
    let process = async |session: RemoteProcess| {
        told(ends(session).await.code().unwrap_err().to_string());
    };
    let all_kinds = async |client: &SessionClient, number: usize| match number % 5 {
        0 => process(client.exec("cat", PIPES).await).await,
        1 => process(client.exec("cat", TERMINAL).await).await,
        2 => process(client.attach().await).await,
        3 => {
            // Before the session begins, which is idle from then on.
            let my_turn = turn.lock().await;
            let dialer = client.port_forward().await;
            let mut connection = echo(&*dialer).await;
            drop(my_turn);
            told(connection.source.read().await.unwrap_err().to_string());
        }
        _ => {
            let command = "exec?command=cat&stdin=true&stdout=true";
            let session = client.web_socket(command, "v5.channel.k8s.io").await;
            told(session.ends().await);
        }
    };
    let at_once = |sessions: usize| {
        let client = node.client();
        let all = join_all((0..sessions).map(|number| all_kinds(&client, number)));
        client_runtime().block_on(all);
    };
    let processes = HeldResources::of(&node.agent).processes;
    at_once(WARM_UP);
    let before = HeldResources::settled(&node.agent, processes);
    for _ in 0..3 {
        at_once(node.sessions(100));
    }
    HeldResources::wait_no_more(&node.agent, before);
}
