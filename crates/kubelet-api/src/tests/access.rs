//! Each path with each kind of credentials.

use std::{io::Write, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::io::AsyncWriteExt as _;

use super::{
    authority::Authority,
    server::{CA_FILE, Credentials, Reply, Server, Setup, rest},
};

/// Every path, with a method for it, and the response to an authorized user.
const PATHS: &[(&str, &str, u16)] = &[
    ("GET", "/healthz", 200),
    ("GET", "/healthz/ping", 200),
    ("GET", "/healthz/log", 200),
    ("GET", "/healthz/syncloop", 200),
    ("GET", "/pods", 200),
    ("GET", "/pods/", 200),
    ("GET", "/pods/x", 404),
    ("DELETE", "/pods", 405),
    ("GET", "/runningpods/", 200),
    ("GET", "/metrics", 200),
    ("GET", "/metrics/probes", 200),
    ("GET", "/metrics/cadvisor", 200),
    ("GET", "/metrics/resource", 200),
    ("GET", "/metrics/slis", 501),
    ("GET", "/configz", 200),
    ("GET", "/containerLogs/default/web/x", 404),
    ("GET", "/containerLogs/default/web", 404),
    ("GET", "/exec/default/web/a", 400),
    ("POST", "/exec/default/web/a", 400),
    ("POST", "/attach/default/web/a", 400),
    ("POST", "/portForward/default/web", 500),
    ("POST", "/run/default/web/a", 200),
    ("POST", "/checkpoint/default/web/a", 501),
    ("GET", "/stats/summary", 200),
    ("GET", "/logs/", 200),
    ("GET", "/debug/pprof/heap", 501),
    ("PUT", "/debug/flags/v", 501),
    ("GET", "/statusz", 501),
    ("GET", "/flagz", 501),
];

#[tokio::test]
async fn no_path_is_answered_without_good_credentials() {
    let server = Server::start().await;
    let other = Authority::new("the authority");
    let rejected = [
        ("nothing", Credentials::None),
        ("a token of nobody", Credentials::Token("guessed")),
        (
            "a certificate of another authority",
            Credentials::Certificate(other.client("ann", &["system:masters"])),
        ),
        (
            "an expired certificate",
            Credentials::Certificate(server.authority.expired_client("ann")),
        ),
        (
            "a certificate from the future",
            Credentials::Certificate(server.authority.early_client("ann")),
        ),
        (
            "a certificate for servers",
            Credentials::Certificate(server.authority.server_as_client("ann")),
        ),
        (
            "a certificate without a name",
            Credentials::Certificate(server.authority.client("", &["system:masters"])),
        ),
    ];
    for (what, credentials) in &rejected {
        for (method, path, _) in PATHS {
            let reply = server.ask(credentials, method, path).await;
            assert_eq!(
                (reply.code, &*reply.body),
                (401, "Unauthorized"),
                "{what}: {method} {path}"
            );
        }
    }
    assert!(server.rights.asked.lock().is_empty());
}

#[tokio::test]
async fn those_who_may_not_are_reported_what_they_lack() {
    let server = Server::start().await;
    for (method, path, _) in PATHS {
        let token = Credentials::Token("tok-bob");
        let reply = server.ask(&token, method, path).await;
        assert_eq!(reply.code, 403, "{method} {path}");
        assert!(
            reply.body.starts_with("Forbidden (user=bob, verb="),
            "{}",
            reply.body
        );
        let lost = server
            .ask(&Credentials::Token("tok-lost"), method, path)
            .await;
        assert_eq!(lost.code, 500, "{method} {path}");
        assert!(lost.body.starts_with("Authorization error (user=lost, "));
    }
    let holder = server.authority.client("bob", &[]);
    let by_certificate = server
        .ask(
            &Credentials::Certificate(holder),
            "GET",
            "/containerLogs/a/b/c",
        )
        .await;
    assert_eq!(
        by_certificate.body,
        "Forbidden (user=bob, verb=get, resource=nodes, subresource(s)=[proxy])\n"
    );
}

#[tokio::test]
async fn those_who_may_are_answered() {
    let server = Server::start().await;
    let certificate = server.authority.client("ann", &[]);
    for (method, path, code) in PATHS {
        for credentials in [
            Credentials::Token("tok-ann"),
            Credentials::Certificate(certificate.clone()),
            Credentials::Both(server.authority.expired_client("ann"), "tok-ann"),
        ] {
            let reply = server.ask(&credentials, method, path).await;
            assert_eq!(reply.code, *code, "{method} {path}: {}", reply.body);
        }
    }
    let meter = Credentials::Token("tok-meter");
    assert_eq!(server.ask(&meter, "GET", "/metrics").await.code, 200);
    assert_eq!(server.ask(&meter, "GET", "/pods").await.code, 403);
}

#[tokio::test]
async fn a_certificate_tells_user_groups_and_itself() {
    let server = Server::start().await;
    let holder = server.authority.client("ann", &["ops"]);
    let credentials = Credentials::Certificate(holder);
    assert_eq!(server.ask(&credentials, "GET", "/pods").await.code, 200);
    let asked = server.rights.asked.lock();
    let [(user, verb, subresource)] = asked.as_slice() else {
        panic!("{asked:?}");
    };
    assert_eq!((*verb, *subresource), ("get", "pods"));
    assert_eq!(user.groups, ["ops", "system:authenticated"]);
    let id = &user.extra["authentication.kubernetes.io/credential-id"][0];
    assert!(id.starts_with("X509SHA256=") && id.len() == 75, "{id}");
}

#[tokio::test]
async fn requests_without_credentials_are_anonymous_if_allowed_and_bad_credentials_are_rejected() {
    let server = Server::with(Setup {
        anonymous: true,
        ..Setup::default()
    })
    .await;
    let reply = server.ask(&Credentials::None, "GET", "/pods").await;
    assert_eq!(
        (reply.code, &*reply.body),
        (
            403,
            "Forbidden (user=system:anonymous, verb=get, resource=nodes, \
             subresource(s)=[pods proxy])\n"
        )
    );
    let expired = server.authority.expired_client("ann");
    for bad in [
        Credentials::Token("guessed"),
        Credentials::Certificate(expired),
    ] {
        assert_eq!(server.ask(&bad, "GET", "/pods").await.code, 401);
    }
}

#[tokio::test]
async fn where_nothing_is_served_everybody_gets_a_404() {
    let server = Server::start().await;
    for path in ["/", "/x", "/metrics/../pods", "//pods", "/api/v1/pods"] {
        let reply = server.ask(&Credentials::None, "GET", path).await;
        assert_eq!(
            (reply.code, &*reply.body),
            (404, "404 page not found\n"),
            "{path}"
        );
    }
    assert!(server.rights.asked.lock().is_empty());
}

#[tokio::test]
async fn other_authorities_count_from_the_moment_the_file_names_them_on_open_connections_too() {
    let server = Server::start().await;
    let (old, new) = (&server.authority, Authority::new("the new one"));
    let old_ann = old.client("ann", &[]);
    let mut open = server.connect(Some(&old_ann)).await;
    let request = b"GET /healthz HTTP/1.1\r\nHost: node\r\n\r\n";
    open.write_all(request).await.unwrap();
    assert_eq!(one(&mut open).await.code, 200);

    let file = server.directory.path().join(CA_FILE);
    let later = async || {
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(11)).await;
        tokio::time::resume();
    };
    // Something that is no bundle changes nothing.
    std::fs::write(&file, "broken").unwrap();
    later().await;
    open.write_all(request).await.unwrap();
    assert_eq!(one(&mut open).await.code, 200);

    std::fs::write(&file, new.pem()).unwrap();
    later().await;
    open.write_all(request).await.unwrap();
    assert_eq!(one(&mut open).await.code, 401);
    let new_ann = Credentials::Certificate(new.client("ann", &[]));
    assert_eq!(server.ask(&new_ann, "GET", "/healthz").await.code, 200);
}

/// One response of a connection that stays open.
async fn one(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> Reply {
    use tokio::io::AsyncReadExt as _;
    let mut text = Vec::new();
    let complete = |text: &[u8]| {
        let text = String::from_utf8_lossy(text).to_ascii_lowercase();
        let (head, body) = text.split_once("\r\n\r\n")?;
        let length = head.split("content-length: ").nth(1)?;
        let length: usize = length.split("\r\n").next()?.parse().ok()?;
        (body.len() == length).then_some(())
    };
    while complete(&text).is_none() {
        text.push(stream.read_u8().await.unwrap());
    }
    Reply::read(&String::from_utf8(text).unwrap())
}

#[tokio::test]
async fn requests_and_refusals_are_counted() {
    let server = Server::start().await;
    server.ask(&Credentials::None, "GET", "/pods").await;
    server
        .ask(&Credentials::Token("tok-bob"), "PATCH", "/configz")
        .await;
    server.get("/nowhere").await;
    assert_eq!(
        server.notes.take(),
        [
            "began GET pods readwrite",
            "answered pods 401",
            "ended pods",
            "began other configz readwrite",
            "answered configz 403",
            "ended configz",
            "began GET other readwrite",
            "answered other 404",
            "ended other",
        ]
    );
}

/// A log that can be read afterwards.
#[derive(Clone, Default)]
struct Capture(Arc<Mutex<Vec<u8>>>);

impl Write for Capture {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn no_token_is_in_any_log() {
    let capture = Capture::default();
    let writer = capture.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    // With one subscriber alone, a thread of another test could switch off what it sees first.
    let _other = tracing::Dispatch::new(tracing_subscriber::registry());
    let _guard = tracing::subscriber::set_default(subscriber);
    let server = Server::start().await;
    for token in ["tok-ann.s3cret", "tok-lost.s3cret", "s3cret"] {
        server.ask(&Credentials::Token(token), "GET", "/pods").await;
        super::http2::get(&server, token, "/pods").await;
    }
    // A broken request, too.
    let mut stream = server.connect(None).await;
    let request = b"GET /pods HTTP/1.1\r\nAuthorization: Bearer s3cret\r\nbad header\r\n\r\n";
    stream.write_all(request).await.unwrap();
    rest(&mut stream).await;
    let log = String::from_utf8(capture.0.lock().clone()).unwrap();
    assert!(log.contains("Rejected a request"), "{log}");
    assert!(!log.contains("s3cret"), "{log}");
    assert!(!log.contains("Bearer"), "{log}");
}
