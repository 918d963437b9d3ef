//! exec, attach and port-forward, which are passed through to the node.

use http::Method;
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream},
    net::TcpListener,
    task::JoinHandle,
};

use super::{
    PODS, TestClient,
    logs::{add_node, node_tls},
    pod_on, server,
};
use crate::{AccessRule, SimApi, User};

const SPDY: &str = "connection: Upgrade\r\nupgrade: SPDY/3.1\r\n";
const UPGRADED: &str =
    "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: SPDY/3.1\r\n\r\n";

/// A node that responds to one request with these headers, echoes data until `end`, and closes the
/// connection. Returns the headers of the request.
async fn node(api: &SimApi, features: &[&str], answer: &'static str) -> JoinHandle<String> {
    let acceptor = node_tls(api);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    add_node(api, listener.local_addr().unwrap().port(), features);
    api.create("pods", &pod_on("web", "n")).unwrap();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = BufReader::new(acceptor.accept(stream).await.unwrap());
        let head = head(&mut stream).await;
        stream.write_all(answer.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        if answer == UPGRADED {
            let mut line = String::new();
            while line != "end\n" {
                line.clear();
                assert_ne!(stream.read_line(&mut line).await.unwrap(), 0);
                stream.write_all(line.as_bytes()).await.unwrap();
                stream.flush().await.unwrap();
            }
        }
        stream.shutdown().await.unwrap();
        head
    })
}

async fn head(stream: &mut (impl tokio::io::AsyncBufRead + Unpin)) -> String {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(stream.read_line(&mut head).await.unwrap(), 0, "{head}");
    }
    head
}

/// Sends a request, and reads the headers of the response.
async fn asked(api: &SimApi, request: &str, headers: &str) -> (BufReader<DuplexStream>, String) {
    let mut stream = BufReader::new(api.connect());
    let text = format!("{request} HTTP/1.1\r\nhost: sim\r\n{headers}\r\n");
    stream.write_all(text.as_bytes()).await.unwrap();
    let head = head(&mut stream).await;
    (stream, head)
}

#[tokio::test]
async fn a_session_is_passed_through_until_the_node_closes_it() {
    for (path, sent) in [
        (
            "exec?command=sh&command=-c&command=echo%20a%26b&stdin=true&stdout=TRUE&stderr=false&tty=0",
            "/exec/default/web/main?command=sh&command=-c&command=echo+a%26b&input=1&output=1",
        ),
        (
            "attach?container=main&stdout&stderr=1&tty=true&command=x",
            "/attach/default/web/main?error=1&output=1&tty=1",
        ),
        ("portforward", "/portForward/default/web"),
        (
            "portforward?ports=80&ports=81",
            "/portForward/default/web?port=80%2C81",
        ),
    ] {
        let api = server().await;
        let node = node(&api, &[], UPGRADED).await;
        let request = format!("POST {PODS}/web/{path}");
        let headers = format!("{SPDY}x-stream-protocol-version: v4.channel.k8s.io\r\n");
        let (mut stream, answer) = asked(&api, &request, &headers).await;
        let answer = answer.to_ascii_lowercase();
        assert!(answer.starts_with("http/1.1 101 "), "{answer}");
        assert!(answer.contains("upgrade: spdy/3.1"), "{answer}");
        for word in ["ping\n", "end\n"] {
            stream.write_all(word.as_bytes()).await.unwrap();
            let mut line = String::new();
            stream.read_line(&mut line).await.unwrap();
            assert_eq!(line, word);
        }
        assert_eq!(stream.read_to_end(&mut Vec::new()).await.unwrap(), 0);
        let head = node.await.unwrap().to_ascii_lowercase();
        let first = format!("POST {sent} HTTP/1.1\r\n").to_ascii_lowercase();
        assert!(head.starts_with(&first), "{head}");
        for header in [
            "host: sim\r\n",
            "x-stream-protocol-version: v4.channel.k8s.io\r\n",
        ] {
            assert!(head.contains(header), "{header} in {head}");
        }
    }
}

#[tokio::test]
async fn an_error_of_the_node_is_passed_on_without_credentials() {
    let api = server().await;
    api.add_token("secret-token", User::admin());
    let refusal =
        "HTTP/1.1 403 Forbidden\r\ncontent-type: text/plain\r\ncontent-length: 4\r\n\r\nno!\n";
    let node = node(&api, &[], refusal).await;
    let headers = format!("{SPDY}authorization: Bearer secret-token\r\n");
    let (mut stream, answer) = asked(&api, &format!("GET {PODS}/web/exec"), &headers).await;
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    let mut body = [0; 4];
    stream.read_exact(&mut body).await.unwrap();
    assert_eq!(&body, b"no!\n");
    let head = node.await.unwrap();
    assert!(!head.contains("secret-token"), "{head}");
}

#[tokio::test]
async fn a_websocket_needs_a_node_that_declares_support() {
    let headers = "connection: upgrade\r\nupgrade: websocket\r\n\
                   sec-websocket-protocol: v5.channel.k8s.io, v4.channel.k8s.io\r\n";
    for (features, code) in [
        (&[][..], "400"),
        (&["ExtendWebSocketsToKubelet"][..], "101"),
    ] {
        let api = server().await;
        let _node = node(&api, features, UPGRADED).await;
        let (_stream, answer) = asked(&api, &format!("GET {PODS}/web/exec"), headers).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {code} ")), "{answer}");
    }
}

#[tokio::test]
async fn an_invalid_session_is_refused_without_the_node() {
    let api = server().await;
    api.add_token("reader", User::new("reader", &[]));
    api.add_access_rule(AccessRule::deny("reader", "create", "pods/exec"));
    let mut free = pod_on("free", "");
    free["spec"]["schedulerName"] = json!("nobody");
    api.create("pods", &free).unwrap();
    api.create("pods", &pod_on("lost", "gone")).unwrap();
    let add = |name: &str| api.create("pods", &pod_on(name, "n")).unwrap();
    add("web");
    add_node(&api, 1, &[]);
    for (token, method, path, code, message) in [
        (
            "",
            Method::GET,
            "none/exec",
            404,
            r#"pods "none" not found"#,
        ),
        (
            "",
            Method::POST,
            "web/attach?container=x",
            400,
            "container x is not valid for pod web",
        ),
        (
            "",
            Method::POST,
            "free/portforward",
            400,
            "pod free does not have a host assigned",
        ),
        (
            "",
            Method::GET,
            "lost/exec",
            404,
            r#"nodes "gone" not found"#,
        ),
        ("", Method::GET, "web/exec", 400, "Upgrade request required"),
        (
            "",
            Method::PUT,
            "web/exec",
            405,
            "the server does not allow this method on the requested resource",
        ),
        (
            "reader",
            Method::GET,
            "web/exec",
            403,
            r#"pods "web" is forbidden: "#,
        ),
        (
            "reader",
            Method::POST,
            "web/exec",
            403,
            r#"pods "web" is forbidden: User "reader" cannot create resource "pods/exec" in API group "" in the namespace "default""#,
        ),
        (
            "reader",
            Method::GET,
            "web/attach",
            400,
            "Upgrade request required",
        ),
    ] {
        let mut client = TestClient::new(&api).await;
        if !token.is_empty() {
            client = client.with_token(token);
        }
        let path = format!("{PODS}/{path}");
        let sent = client.send(method, &path, "", String::new());
        let (found, error) = sent.await;
        assert_eq!(
            (found, error["message"].as_str()),
            (code, Some(message)),
            "{path}"
        );
    }
}
