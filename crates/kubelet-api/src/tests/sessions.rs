//! Sessions on the kubelet API (port 10250): the kubelet's paths, rights and words.

use std::time::Duration;

use bytes::Bytes;
use rubelet_server::{SessionAction, SessionError, testing::WebSocket};
use rubelet_streaming::StdStreams;
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::{
    flood::{allow_many_files, flood},
    server::{Credentials, Server},
};

const V4: &str = "v4.channel.k8s.io";
const V5: &str = "v5.channel.k8s.io";
const TUNNEL: &str = "SPDY/3.1+portforward.k8s.io";
const ANN: &str = "Authorization: Bearer tok-ann\r\n";
const ECHO: &str = "POST /exec/default/web/a?command=cat&input=1&output=1";

async fn open(server: &Server, line: &str, protocol: &str) -> WebSocket<TlsStream<TcpStream>> {
    let stream = server.connect(None).await;
    WebSocket::open(stream, line, protocol, ANN).await
}

#[tokio::test]
async fn paths_with_and_without_the_uid_lead_to_sessions() {
    let server = Server::start().await;
    let exec = |container: &str| SessionAction::Exec {
        container: container.to_owned(),
        command: ["ls", "-l"].map(str::to_owned).to_vec(),
        streams: StdStreams {
            stdout: true,
            stderr: true,
            ..StdStreams::default()
        },
    };
    let attach = SessionAction::Attach {
        container: "a".to_owned(),
        streams: StdStreams {
            stdin: true,
            stdout: true,
            tty: true,
            ..StdStreams::default()
        },
    };
    let ports = |ports: &[u16]| SessionAction::PortForward {
        ports: ports.to_vec(),
    };
    for (path, protocol, uid, action) in [
        (
            "/exec/default/web/a?command=ls&command=-l&output=1&error=1",
            V5,
            None,
            exec("a"),
        ),
        (
            "/exec/default/web/uid-web/a?command=ls&command=-l&output=1&error=1&x=%zz",
            V4,
            Some("uid-web"),
            exec("a"),
        ),
        (
            "/attach/default/web/a?input=1&output=1&error=1&tty=1",
            V5,
            None,
            attach.clone(),
        ),
        (
            "/attach/default/web/uid-web/a?input=1&output=1&tty=1&stderr=true",
            V5,
            Some("uid-web"),
            attach,
        ),
        (
            "/portForward/default/web?port=80&port=81",
            V4,
            None,
            ports(&[80, 81]),
        ),
        (
            "/portForward/default/web/uid-web",
            TUNNEL,
            Some("uid-web"),
            ports(&[]),
        ),
    ] {
        for method in ["GET", "POST"] {
            let session = open(&server, &format!("{method} {path}"), protocol).await;
            assert_eq!(session.code, 101, "{method} {path}: {}", session.head);
            let asked = server.node.sessions.asked.lock().pop().unwrap();
            assert_eq!(asked.uid.as_deref(), uid);
            assert_eq!(asked.action, action, "{path}");
        }
    }
    server.stop().await;
}

/// A request, its protocol, what the node says, and the answer's code and text.
type RefusalCase = (
    &'static str,
    &'static str,
    Option<SessionError>,
    u16,
    &'static str,
);

fn refusals_of_requests() -> Vec<RefusalCase> {
    vec![
        (
            "POST /exec/default/web/a?command=ls",
            V5,
            None,
            400,
            "you must specify at least 1 of stdin, stdout, stderr",
        ),
        (
            "POST /attach/default/web/a?tty=1&error=1&output=true",
            V5,
            None,
            400,
            "you must specify at least 1 of stdin, stdout, stderr",
        ),
        (
            "POST /exec/default/none/a?output=1",
            V5,
            None,
            404,
            "pod does not exist",
        ),
        (
            "POST /portForward/default/none",
            TUNNEL,
            None,
            404,
            "pod does not exist",
        ),
        (
            "POST /portForward/default/web/uid-x",
            TUNNEL,
            None,
            404,
            "pod not found",
        ),
        (
            "GET /portForward/default/none",
            V4,
            None,
            400,
            "query parameter \"port\" is required",
        ),
        (
            "GET /portForward/default/web?port=",
            V4,
            None,
            400,
            "query parameter \"port\" cannot be empty",
        ),
        (
            "GET /portForward/default/web?port=0",
            V4,
            None,
            400,
            "port \"0\" must be > 0",
        ),
        (
            "GET /portForward/default/web?port=http",
            V4,
            None,
            400,
            "unable to parse \"http\" as a port: strconv.ParseUint: parsing \"http\": invalid syntax",
        ),
    ]
}

fn refusals_of_the_node() -> Vec<RefusalCase> {
    let exec = "POST /exec/default/web/a?command=ls&output=1";
    let run_out = SessionError::RuntimeExhausted("rpc error: too many".to_owned());
    vec![
        (
            exec,
            V5,
            Some(SessionError::NotRunning),
            500,
            "container not found (\"a\")",
        ),
        (
            "POST /attach/default/web/a?output=1",
            V5,
            Some(SessionError::NotRunning),
            500,
            "container a not found in pod web_default",
        ),
        (
            "POST /portForward/default/web",
            TUNNEL,
            Some(SessionError::NoSandbox),
            500,
            "pod not found (\"web_default\")",
        ),
        (
            exec,
            V5,
            Some(SessionError::RuntimeNotFound("rpc error: no".to_owned())),
            404,
            "rpc error: no",
        ),
        (exec, V5, Some(run_out), 429, "rpc error: too many"),
        (
            exec,
            V5,
            Some(SessionError::Runtime("rpc error: broken".to_owned())),
            500,
            "rpc error: broken",
        ),
    ]
}

#[tokio::test]
async fn refusals_have_the_codes_and_words_of_the_kubelet() {
    let server = Server::start().await;
    let all = refusals_of_requests().into_iter();
    for (line, protocol, refusal, code, text) in all.chain(refusals_of_the_node()) {
        server.node.sessions.refusal.lock().clone_from(&refusal);
        let refused = open(&server, line, protocol).await;
        assert_eq!(refused.code, code, "{line}");
        let head = refused.head.to_ascii_lowercase();
        assert_eq!(head.contains("retry-after: 60"), code == 429, "{line}");
        assert_eq!(refused.body().await, text, "{line}");
    }
}

#[tokio::test]
async fn what_is_no_request_for_an_upgrade_is_refused() {
    let server = Server::start().await;
    let ann = Credentials::Token("tok-ann");
    let path = "/exec/default/web/a?command=ls&output=1";
    let reply = server.ask(&ann, "POST", path).await;
    let told = (reply.code, &*reply.body);
    assert_eq!(told, (500, "Upgrade request required\n"));
    let reply = server.ask(&ann, "PUT", path).await;
    assert_eq!((reply.code, &*reply.body), (405, "405: Method Not Allowed"));
    assert!(reply.headers.contains("allow: get, post"));
    // Where a body ends, a proxy may have seen otherwise.
    let stream = server.connect(None).await;
    let headers = format!("{ANN}Transfer-Encoding: chunked\r\n");
    let refused = WebSocket::open(stream, ECHO, V5, &headers).await;
    assert_eq!(refused.code, 400);
    assert!(
        refused
            .head
            .to_ascii_lowercase()
            .contains("connection: close")
    );
}

#[tokio::test]
async fn sessions_need_the_right_on_proxy_and_the_verb_of_their_method() {
    let server = Server::start().await;
    for (line, verb) in [
        ("GET /exec/default/web/a?command=ls&output=1", "get"),
        ("POST /exec/default/web/a?command=ls&output=1", "create"),
        ("GET /attach/default/web/a?output=1", "get"),
        ("POST /portForward/default/web?port=80", "create"),
        ("POST /run/default/web/a?cmd=ls", "create"),
    ] {
        for (token, code) in [
            ("tok-meter", 403),
            ("tok-bob", 403),
            ("tok-lost", 500),
            ("x", 401),
        ] {
            server.rights.asked.lock().clear();
            let headers = format!("Authorization: Bearer {token}\r\n");
            let stream = server.connect(None).await;
            let refused = WebSocket::open(stream, line, V5, &headers).await;
            assert_eq!(refused.code, code, "{line} {token}");
            let asked = server.rights.asked.lock().clone();
            assert!(
                asked
                    .iter()
                    .all(|(_, asked, of)| (*asked, *of) == (verb, "proxy"))
            );
            assert_eq!(asked.is_empty(), code == 401);
        }
    }
    assert!(server.node.sessions.asked.lock().is_empty());
    assert!(server.node.sessions.ran.lock().is_empty());
}

#[tokio::test]
async fn a_command_is_run_and_its_output_is_the_answer() {
    let server = Server::start().await;
    let ann = Credentials::Token("tok-ann");
    let output = |output: Result<&'static str, SessionError>| {
        *server.node.sessions.output.lock() =
            output.map(|text| Bytes::from_static(text.as_bytes()));
    };
    output(Ok("out\nerr\n"));
    let reply = server
        .ask(&ann, "POST", "/run/default/web/a?cmd=ls+-l++x")
        .await;
    assert_eq!((reply.code, &*reply.body), (200, "out\nerr\n"));
    assert!(reply.headers.contains("content-type: application/json"));
    let ran = server.node.sessions.ran.lock().pop().unwrap();
    assert_eq!(ran.command, ["ls", "-l", "", "x"]);
    output(Ok(""));
    let reply = server
        .ask(&ann, "POST", "/run/default/web/uid-web/a?cmd=true")
        .await;
    assert_eq!((reply.code, &*reply.body), (200, ""));
    assert!(!reply.headers.contains("content-type"));
    output(Err(SessionError::Runtime(
        "command 'false' exited with 1: ".to_owned(),
    )));
    let reply = server
        .ask(&ann, "POST", "/run/default/web/a?cmd=false")
        .await;
    assert_eq!(
        (reply.code, &*reply.body),
        (500, "command 'false' exited with 1: ")
    );
    output(Err(SessionError::NotRunning));
    let reply = server
        .ask(&ann, "POST", "/run/default/web/a?cmd=false")
        .await;
    assert_eq!(
        (reply.code, &*reply.body),
        (500, "container not found (\"a\")")
    );
    output(Err(SessionError::RuntimeNotFound(
        "rpc error: no".to_owned(),
    )));
    let reply = server
        .ask(&ann, "POST", "/run/default/web/a?cmd=false")
        .await;
    assert_eq!((reply.code, &*reply.body), (500, "rpc error: no"));
    let reply = server
        .ask(&ann, "POST", "/run/default/none/a?cmd=false")
        .await;
    assert_eq!((reply.code, &*reply.body), (404, "pod does not exist"));
}

#[tokio::test]
async fn a_session_counts_as_a_request_until_it_ends() {
    let server = Server::start().await;
    let mut session = open(&server, ECHO, V5).await;
    session.echo("hello").await;
    let began = [
        "began POST exec readwrite",
        "websocket exec",
        "answered exec 101",
    ];
    assert_eq!(server.notes.take(), began);
    // One of an older protocol is no number of its own.
    drop(open(&server, ECHO, V4).await);
    drop(session);
    let mut ended = 0;
    while ended < 2 {
        let notes = server.notes.take();
        assert!(!notes.contains(&"websocket exec".to_owned()));
        ended += notes.iter().filter(|note| *note == "ended exec").count();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn a_stop_ends_sessions() {
    let server = Server::start().await;
    let mut session = open(&server, ECHO, V5).await;
    session.echo("hello").await;
    let stopped = tokio::time::timeout(Duration::from_secs(60), server.stop());
    let until_closed = async { while session.frame().await.is_some() {} };
    let (stopped, ()) = tokio::join!(stopped, until_closed);
    stopped.expect("the port waited for a session");
}

#[tokio::test]
async fn a_thousand_idle_sessions_outlive_a_flood_of_unauthenticated_connections() {
    allow_many_files();
    let server = Server::start().await;
    let ann = server.authority.client("ann", &[]);
    let mut sessions = Vec::new();
    for _ in 0..500 {
        let stream = server.connect(Some(&ann)).await;
        sessions.push(WebSocket::open(stream, ECHO, V5, "").await);
    }
    let held = flood(&server, 50, b"").await;
    // Those come in beside it: the flood has no more than its own places.
    for _ in 0..500 {
        let stream = server.connect(Some(&ann)).await;
        sessions.push(WebSocket::open(stream, ECHO, V5, "").await);
    }
    assert!(sessions.iter().all(|session| session.code == 101));
    let more = flood(&server, 1, b"\x16").await;
    for session in &mut sessions {
        session.echo("hello").await;
    }
    assert_eq!(server.get("/pods").await.code, 200);
    drop((held, more));
}
