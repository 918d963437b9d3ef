//! Tokens, certificates and plugins against a server in memory.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use serde_json::{Value, json};

use super::*;
use crate::{
    ApiError, Client, ClientOptions, ExecVersion,
    test_server::{TestAnswer, TestServer},
};

/// A server that accepts the token in `accepted`.
fn server(accepted: impl Fn() -> String + Send + Sync + 'static) -> TestServer {
    TestServer::new(move |asked| {
        let header = asked.headers.get("authorization");
        let header = header.map_or("", |header| header.to_str().unwrap());
        if header == format!("Bearer {}", accepted()) {
            TestAnswer::Json(200, json!({}))
        } else {
            TestAnswer::Json(401, json!({"kind": "Status", "message": "Unauthorized"}))
        }
    })
}

fn client(server: &TestServer, credential: Credential) -> Client {
    let mut config = server.config(true);
    config.credential = credential;
    Client::new(config, ClientOptions::default()).unwrap()
}

async fn get(client: &Client) -> Result<Value, ApiError> {
    client.get("/api").await
}

#[tokio::test(start_paused = true)]
async fn a_token_file_is_read_again_each_minute_and_when_it_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("token");
    let accepted = directory.path().join("accepted");
    for path in [&path, &accepted] {
        fs::write(path, "one").unwrap();
    }
    let server = server(move || fs::read_to_string(&accepted).unwrap());
    let credential = Credential::TokenFile {
        path: path.clone(),
        otherwise: None,
    };
    let client = client(&server, credential);
    get(&client).await.unwrap();

    // Refused: the new one is fetched at once, and only then the caller hears of it.
    fs::write(directory.path().join("accepted"), "two").unwrap();
    let error = get(&client).await.unwrap_err();
    assert_eq!(error.code(), Some(401));
    fs::write(&path, "two\n").unwrap();
    get(&client).await.unwrap();

    // A minute later it is read without being refused.
    fs::write(&path, "three").unwrap();
    fs::write(directory.path().join("accepted"), "three").unwrap();
    tokio::time::advance(Duration::from_secs(61)).await;
    let before = server.asked().len();
    get(&client).await.unwrap();
    assert_eq!(server.asked().len(), before + 1);

    // A file that is gone changes nothing.
    fs::remove_file(&path).unwrap();
    tokio::time::advance(Duration::from_secs(61)).await;
    get(&client).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn without_a_token_nothing_is_sent() {
    let directory = tempfile::tempdir().unwrap();
    let server = server(String::new);
    let path = directory.path().join("token");
    let credential = Credential::TokenFile {
        path: path.clone(),
        otherwise: None,
    };
    let client = client(&server, credential);
    for text in [None, Some(" \n"), Some("a\nb")] {
        if let Some(text) = text {
            fs::write(&path, text).unwrap();
        }
        let error = get(&client).await.unwrap_err();
        assert!(
            matches!(&error, ApiError::Credentials(CredentialError::File { .. })),
            "{error:?}"
        );
        assert!(error.is_transient());
    }
    assert!(server.asked().is_empty());
}

struct Plugin {
    directory: tempfile::TempDir,
    now: Arc<AtomicI64>,
}

impl Plugin {
    /// A shell script that counts its runs in a file.
    fn new(script: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("plugin");
        fs::write(
            &path,
            format!(
                "#!/bin/sh\ncd {}\necho run >> runs\n{script}\n",
                directory.path().display()
            ),
        )
        .unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let now = Arc::new(AtomicI64::new(1000));
        Self { directory, now }
    }

    fn runs(&self) -> usize {
        let runs = fs::read_to_string(self.directory.path().join("runs"));
        runs.map_or(0, |runs| runs.lines().count())
    }

    fn client(&self, server: &TestServer) -> Client {
        let mut config = server.config(true);
        config.credential = Credential::Exec(Box::new(ExecPlugin {
            version: ExecVersion::V1,
            command: self.directory.path().join("plugin"),
            args: vec!["arg".to_owned()],
            env: vec![("TOKEN".to_owned(), "abc".to_owned())],
            install_hint: Some("see the manual".to_owned()),
            cluster: Some(json!({"server": "https://h"})),
        }));
        let now = Arc::clone(&self.now);
        let options = ClientOptions {
            clock: Arc::new(move || Timestamp::from_second(now.load(Ordering::Relaxed)).unwrap()),
            before_plugin: |command| {
                command.env("BEFORE", "1");
            },
            ..ClientOptions::default()
        };
        Client::new(config, options).unwrap()
    }
}

const PRINT: &str = r#"printf '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"%s","expirationTimestamp":"%s"}}' "$TOKEN" "1970-01-01T01:00:00Z""#;

#[tokio::test]
async fn a_plugin_runs_once_and_again_when_its_token_expires() {
    let plugin = Plugin::new(&format!(
        "[ \"$1$BEFORE\" = arg1 ] || exit 1\necho \"$KUBERNETES_EXEC_INFO\" > info\n{PRINT}"
    ));
    let server = server(|| "abc".to_owned());
    let client = plugin.client(&server);
    let together: Vec<_> = (0..5)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { get(&client).await })
        })
        .collect();
    for one in together {
        one.await.unwrap().unwrap();
    }
    assert_eq!(plugin.runs(), 1);
    let info = fs::read(plugin.directory.path().join("info")).unwrap();
    let info: Value = serde_json::from_slice(&info).unwrap();
    assert_eq!(
        info,
        json!({"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1",
            "spec": {"interactive": false, "cluster": {"server": "https://h"}}})
    );
    plugin.now.store(3600 - 5, Ordering::Relaxed);
    get(&client).await.unwrap();
    assert_eq!(plugin.runs(), 2, "a little before it expires");
}

#[tokio::test]
async fn a_refused_token_makes_the_plugin_run_once_more() {
    let plugin = Plugin::new(PRINT);
    let server = server(|| "other".to_owned());
    let client = plugin.client(&server);
    assert_eq!(get(&client).await.unwrap_err().code(), Some(401));
    assert_eq!(plugin.runs(), 2);
    assert_eq!(server.asked().len(), 1, "the same token is not sent twice");
}

#[tokio::test]
async fn a_plugin_that_fails_is_named_and_not_run_for_each_request() {
    let plugin = Plugin::new("echo no luck >&2; exit 3");
    let server = server(String::new);
    let client = plugin.client(&server);
    for _ in 0..3 {
        let error = get(&client).await.unwrap_err();
        let text = ErrorChain(&error).to_string();
        assert!(
            text.contains("plugin") && text.contains("no luck"),
            "{text}"
        );
    }
    assert_eq!(plugin.runs(), 1);
    fs::remove_file(plugin.directory.path().join("plugin")).unwrap();
    let error = get(&plugin.client(&server)).await.unwrap_err();
    let text = ErrorChain(&error).to_string();
    assert!(text.contains("no such program; see the manual"), "{text}");
}

#[tokio::test]
async fn output_without_end_is_cut() {
    let plugin = Plugin::new("head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2");
    let error = get(&plugin.client(&server(String::new))).await.unwrap_err();
    let text = ErrorChain(&error).to_string();
    assert!(text.contains("no ExecCredential"), "{text}");
}

#[tokio::test]
async fn a_plugin_that_somebody_gave_up_on_serves_the_next_one() {
    let plugin = Plugin::new(&format!("while ! [ -e go ]; do sleep 0.02; done\n{PRINT}"));
    let server = server(|| "abc".to_owned());
    let client = plugin.client(&server);
    let hasty = client.with_limits(0.0, 0, Duration::from_millis(50));
    assert!(matches!(get(&hasty).await, Err(ApiError::TimedOut)));
    fs::write(plugin.directory.path().join("go"), "").unwrap();
    get(&client).await.unwrap();
    assert_eq!(plugin.runs(), 1);
}
