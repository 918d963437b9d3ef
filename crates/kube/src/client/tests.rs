//! Requests to a server in memory, with paused time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::Method;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::ApiRequest;
use crate::{
    ApiError, Client, ClientOptions, Credential, PatchKind, RequestObserver, Secret,
    test_server::{TestAnswer, TestServer},
};

impl Client {
    /// Reads what is no JSON.
    pub(crate) async fn get_text(&self, path: &str) -> Result<String, ApiError> {
        let bytes = self.exchange(ApiRequest::new(Method::GET, path)).await?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn ok() -> TestAnswer {
    TestAnswer::Json(200, json!({"ok": true}))
}

async fn get(client: &Client) -> Result<Value, ApiError> {
    client.get("/api/v1/nodes/a").await
}

#[tokio::test(start_paused = true)]
async fn each_verb_says_what_its_body_is() {
    for http2 in [false, true] {
        let server = TestServer::new(|_| ok());
        let client = server.client(http2);
        let body = json!({"a": 1});
        let _: Value = client.get("/x?limit=1").await.unwrap();
        let _: Value = client.create("/x", &body).await.unwrap();
        let _: Value = client.replace("/x", &body).await.unwrap();
        for kind in [PatchKind::StrategicMerge, PatchKind::Merge, PatchKind::Json] {
            let _: Value = client.patch("/x", kind, &body).await.unwrap();
        }
        client
            .delete("/x", &json!({"gracePeriodSeconds": 0}))
            .await
            .unwrap();
        assert_eq!(client.get_text("/healthz").await.unwrap(), r#"{"ok":true}"#);
        let asked = server.asked();
        let seen: Vec<String> = asked
            .iter()
            .map(|asked| {
                let kind = asked.headers.get("content-type");
                let kind = kind.map_or("-", |kind| kind.to_str().unwrap());
                format!("{} {} {kind} {}", asked.method, asked.path, asked.body)
            })
            .collect();
        assert_eq!(
            seen,
            [
                "GET /x?limit=1 - ",
                r#"POST /x application/json {"a":1}"#,
                r#"PUT /x application/json {"a":1}"#,
                r#"PATCH /x application/strategic-merge-patch+json {"a":1}"#,
                r#"PATCH /x application/merge-patch+json {"a":1}"#,
                r#"PATCH /x application/json-patch+json {"a":1}"#,
                r#"DELETE /x application/json {"gracePeriodSeconds":0}"#,
                "GET /healthz - ",
            ]
        );
        assert!(asked.iter().all(|asked| {
            asked.headers["accept"] == "application/json"
                && asked.headers["user-agent"]
                    .to_str()
                    .unwrap()
                    .starts_with("rubelet/")
        }));
        assert_eq!(
            server.connections(),
            1,
            "one connection does, http2: {http2}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_carries_what_the_server_says() {
    let server = TestServer::new(|_| {
        TestAnswer::Json(
            404,
            json!({"kind": "Status", "code": 404, "reason": "NotFound",
            "message": "nodes \"a\" not found"}),
        )
    });
    let error = get(&server.client(true)).await.unwrap_err();
    assert!(error.is_not_found() && !error.is_transient());
    assert_eq!(error.to_string(), "nodes \"a\" not found");
}

#[tokio::test(start_paused = true)]
async fn who_is_asked_to_wait_waits_within_the_timeout() {
    let refusals = AtomicUsize::new(0);
    let server = TestServer::new(move |asked| {
        let wait = if asked.path == "/long" { "60" } else { "3" };
        let headers = vec![("retry-after", wait.to_owned())];
        match refusals.fetch_add(1, Ordering::Relaxed) {
            0 => TestAnswer::With(429, headers, String::new()),
            1 => TestAnswer::With(503, headers, String::new()),
            2 => ok(),
            _ => TestAnswer::With(429, headers, String::new()),
        }
    });
    let client = server.client(true);
    let start = Instant::now();
    get(&client).await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 6);
    let error = client.get::<Value>("/long").await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(60)));
    assert_eq!(
        start.elapsed().as_secs(),
        6,
        "waiting beyond the timeout is for the caller"
    );
    let error = get(&client).await.unwrap_err();
    assert_eq!(error.code(), Some(429));
    assert!(start.elapsed() < Duration::from_secs(36));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_costs_the_timeout_and_the_connection() {
    for http2 in [false, true] {
        let server = TestServer::new(|asked| match asked.connection {
            1 => TestAnswer::Hang,
            _ => ok(),
        });
        let client = server
            .client(http2)
            .with_limits(0.0, 0, Duration::from_secs(10));
        let start = Instant::now();
        assert!(matches!(get(&client).await, Err(ApiError::TimedOut)));
        assert_eq!(start.elapsed().as_secs(), 10);
        get(&client).await.unwrap();
        assert_eq!(server.connections(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn one_slow_answer_does_not_cost_a_connection_that_works() {
    let server = TestServer::new(|asked| {
        if asked.path == "/slow" {
            TestAnswer::Hang
        } else {
            ok()
        }
    });
    let client = server.client(true);
    get(&client).await.unwrap();
    let slow = tokio::spawn({
        let client = client.clone();
        async move { client.get::<Value>("/slow").await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    get(&client).await.unwrap();
    assert!(matches!(slow.await.unwrap(), Err(ApiError::TimedOut)));
    get(&client).await.unwrap();
    assert_eq!(server.connections(), 1);
}

#[tokio::test(start_paused = true)]
async fn reading_is_tried_again_after_a_broken_connection_and_writing_is_not() {
    for http2 in [false, true] {
        let server = TestServer::new(|asked| match asked.connection {
            1 | 3 => TestAnswer::Close,
            _ => ok(),
        });
        let client = server.client(http2);
        get(&client).await.unwrap();
        assert_eq!(server.connections(), 2);
        server.set_down(false);
        tokio::time::sleep(Duration::from_millis(1)).await;
        let error = client.create::<Value>("/x", &json!({})).await.unwrap_err();
        assert!(matches!(error, ApiError::Unreachable(_)), "{error:?}");
        assert!(error.is_transient());
        assert_eq!(server.connections(), 3);
        client.create::<Value>("/x", &json!({})).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_listens() {
    let server = TestServer::new(|_| ok());
    server.set_down(true);
    let client = server.client(true);
    assert!(matches!(get(&client).await, Err(ApiError::Unreachable(_))));
    server.set_down(false);
    get(&client).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn many_at_once_share_a_connection_and_the_next_one_begins_where_it_is_full() {
    let server = TestServer::with_streams(4, |asked| match asked.path.as_str() {
        "/wait" => TestAnswer::Hang,
        _ => ok(),
    });
    let client = server.client(true);
    // The first answer tells how many streams there may be.
    get(&client).await.unwrap();
    let waiting: Vec<_> = (0..10)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.get::<Value>("/wait").await })
        })
        .collect();
    tokio::time::sleep(Duration::from_secs(1)).await;
    get(&client).await.unwrap();
    assert_eq!(server.connections(), 3);
    for waiting in waiting {
        waiting.abort();
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    get(&client).await.unwrap();
    assert_eq!(server.connections(), 3, "what was given up makes room");
}

#[tokio::test(start_paused = true)]
async fn after_a_reload_new_requests_use_new_connections() {
    let (answer, write) = TestAnswer::lines(&[]);
    let answer = Mutex::new(Some(answer));
    let server = TestServer::new(move |asked| match asked.path.as_str() {
        "/old" => answer.lock().take().unwrap(),
        _ => ok(),
    });
    let client = server.client(true);
    let old = tokio::spawn({
        let client = client.clone();
        async move { client.get::<Value>("/old").await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    client.reload();
    get(&client).await.unwrap();
    assert_eq!(server.connections(), 2);
    write.send("{}".to_owned()).unwrap();
    drop(write);
    old.await.unwrap().expect("what was under way finishes");
}

#[tokio::test(start_paused = true)]
async fn an_answer_beyond_all_bounds_is_refused() {
    let (answer, write) = TestAnswer::lines(&[]);
    let answer = Mutex::new(Some(answer));
    let server = TestServer::new(move |_| answer.lock().take().unwrap());
    let client = server.client(true);
    for _ in 0..20 {
        write.send(" ".repeat(1024 * 1024)).unwrap();
    }
    let error = get(&client).await.unwrap_err();
    let text = rubelet_base::ErrorChain(&error).to_string();
    assert!(text.contains("larger than 16 MiB"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_no_json_or_no_path_is_named() {
    let server = TestServer::new(|_| TestAnswer::With(200, vec![], "<html>".to_owned()));
    let client = server.client(false);
    assert!(matches!(get(&client).await, Err(ApiError::Body(_))));
    for path in ["api/v1", "/a b", ""] {
        let error = client.get::<Value>(path).await.unwrap_err();
        assert!(
            matches!(error, ApiError::Request { .. }),
            "{path}: {error:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_rate_limit_spaces_requests_and_another_limit_is_another() {
    let server = TestServer::new(|_| ok());
    let client = server
        .client(true)
        .with_limits(2.0, 1, Duration::from_secs(3));
    let start = Instant::now();
    for _ in 0..4 {
        get(&client).await.unwrap();
    }
    assert_eq!(start.elapsed().as_millis(), 1500);
    let unlimited = client.with_limits(0.0, 0, Duration::from_secs(3));
    for _ in 0..100 {
        get(&unlimited).await.unwrap();
    }
    assert_eq!(start.elapsed().as_millis(), 1500);
    let many: Vec<_> = (0..10)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { get(&client).await })
        })
        .collect();
    let mut late = 0;
    for one in many {
        late += usize::from(matches!(one.await.unwrap(), Err(ApiError::TimedOut)));
    }
    assert!(late > 0, "who would wait beyond the timeout is told so");
}

#[derive(Default)]
struct SeenRequests(Mutex<Vec<String>>);

impl RequestObserver for SeenRequests {
    fn request_ended(&self, method: &'static str, host: &str, code: Option<u16>, took: Duration) {
        let line = format!("{method} {host} {code:?} {}s", took.as_secs());
        self.0.lock().push(line);
    }
}

#[tokio::test(start_paused = true)]
async fn the_observer_is_notified_of_each_request() {
    let server = TestServer::new(|asked| match asked.path.as_str() {
        "/hang" => TestAnswer::Hang,
        _ => TestAnswer::Json(409, json!({})),
    });
    let seen = Arc::new(SeenRequests::default());
    let options = ClientOptions {
        observer: Arc::<SeenRequests>::clone(&seen),
        ..ClientOptions::default()
    };
    let client = Client::new(server.config(true), options).unwrap();
    client.create::<Value>("/x", &json!({})).await.unwrap_err();
    client.get::<Value>("/hang").await.unwrap_err();
    assert_eq!(
        *seen.0.lock(),
        [
            "POST api.test:8080 Some(409) 0s",
            "GET api.test:8080 None 30s"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_token_goes_with_each_request_and_is_never_shown() {
    let server = TestServer::new(|_| ok());
    let mut config = server.config(true);
    config.credential = Credential::Token(Secret::new("abc"));
    assert!(!format!("{config:?}").contains("abc"));
    let client = Client::new(config, ClientOptions::default()).unwrap();
    get(&client).await.unwrap();
    assert_eq!(server.asked()[0].headers["authorization"], "Bearer abc");
    assert!(!format!("{client:?}").contains("abc"));

    let mut config = server.config(true);
    config.credential = Credential::Basic {
        user: "u".into(),
        password: Secret::new("p"),
    };
    let client = Client::new(config, ClientOptions::default()).unwrap();
    get(&client).await.unwrap();
    assert_eq!(server.asked()[1].headers["authorization"], "Basic dTpw");
}
