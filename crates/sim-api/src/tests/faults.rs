//! Injected faults.

use std::time::Duration;

use http::{Method, header};
use serde_json::json;
use tokio::time::{Instant, timeout};

use super::{PODS, TestClient, pair, pod, pod_on, server};
use crate::{Fault, Restart, Rule, SimApi};

fn rule(api: &SimApi, text: &str) {
    api.add_fault(text.parse().unwrap());
}

async fn fails(client: &mut TestClient, path: &str) -> bool {
    client
        .try_send(Method::GET, path, "", String::new())
        .await
        .is_err()
}

#[tokio::test(start_paused = true)]
async fn errors_have_their_count_and_retry_after() {
    let (api, mut client) = pair().await;
    rule(&api, "create pods times=1 retry-after=2 code=429");
    let answer = client
        .try_send(
            Method::POST,
            PODS,
            "application/json",
            pod("web").to_string(),
        )
        .await
        .unwrap();
    assert_eq!(answer.status(), 429);
    assert_eq!(answer.headers()[header::RETRY_AFTER], "2");
    assert!(api.get("pods", "", "web").is_none(), "it was not done");
    drop(answer);
    let mut client = TestClient::new(&api).await;
    assert_eq!(client.post(PODS, &pod("web")).await.0, 201);
    assert_eq!(api.fault_hits()[0].1, 1);
    assert_eq!(api.count(|request| request.fault.is_some()), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lost_response_has_its_effect() {
    let (api, mut client) = pair().await;
    rule(&api, "create pods times=1 lost");
    assert_eq!(client.post(PODS, &pod("web")).await.0, 504);
    assert!(api.get("pods", "", "web").is_some());
    rule(&api, "delete pods times=1 cut-after");
    let gone = client
        .try_send(Method::DELETE, &format!("{PODS}/web"), "", String::new())
        .await;
    assert!(gone.is_err());
    assert!(api.get("pods", "", "web").is_none());
}

#[tokio::test(start_paused = true)]
async fn connections_are_cut_before_and_during_responses() {
    let api = server().await;
    rule(&api, "get namespaces times=1 cut");
    let mut client = TestClient::new(&api).await;
    assert!(fails(&mut client, "/api/v1/namespaces/default").await);
    rule(&api, "list namespaces times=1 cut-body");
    let mut client = TestClient::new(&api).await;
    let answer = client
        .try_send(Method::GET, "/api/v1/namespaces", "", String::new())
        .await;
    let body = http_body_util::BodyExt::collect(answer.unwrap().into_body()).await;
    assert!(body.is_err());
    let mut client = TestClient::new(&api).await;
    assert_eq!(client.get("/api/v1/namespaces").await.0, 200);
    rule(&api, "watch namespaces cut-body");
    let path = "/api/v1/namespaces?watch=1";
    let answer = client.try_send(Method::GET, path, "", String::new()).await;
    let body = http_body_util::BodyExt::collect(answer.unwrap().into_body()).await;
    assert!(body.is_err());
}

#[tokio::test(start_paused = true)]
async fn writes_can_be_slow_while_reads_are_fast() {
    let (api, mut client) = pair().await;
    let delay = Duration::from_secs(3);
    api.add_fault(Rule::new(
        "write",
        "*",
        Fault::Delay {
            from: delay,
            to: delay,
        },
    ));
    let start = Instant::now();
    client.get(PODS).await;
    assert!(start.elapsed() < delay);
    client.post(PODS, &pod("web")).await;
    assert!(start.elapsed() >= delay);
}

#[tokio::test(start_paused = true)]
async fn a_stalled_watch_sends_nothing_and_does_not_end() {
    let api = server().await;
    api.configure(|config| config.scheduler = false);
    rule(&api, "watch pods stall=1s");
    let mut lines = TestClient::new(&api)
        .await
        .watch("/api/v1/pods?watch=1&timeoutSeconds=60")
        .await;
    api.create("pods", &pod("early")).unwrap();
    assert_eq!(lines.next_type_and_name().await.1, "early");
    tokio::time::sleep(Duration::from_secs(2)).await;
    api.create("pods", &pod("late")).unwrap();
    assert!(lines.is_silent(Duration::from_secs(3600)).await);
}

#[tokio::test(start_paused = true)]
async fn watches_end_early_and_expire() {
    let api = server().await;
    rule(&api, "watch pods times=1 end=2s");
    rule(&api, "watch pods times=1 expire");
    let start = Instant::now();
    let mut lines = TestClient::new(&api)
        .await
        .watch("/api/v1/pods?watch=1")
        .await;
    assert!(lines.next().await.is_none());
    assert_eq!(start.elapsed().as_secs(), 2);
    let mut lines = TestClient::new(&api)
        .await
        .watch("/api/v1/pods?watch=1")
        .await;
    assert_eq!(lines.next().await.unwrap()["object"]["code"], 410);
}

#[tokio::test(start_paused = true)]
async fn a_hung_connection_stays_silent_and_new_ones_are_served() {
    let api = server().await;
    let mut old = TestClient::new(&api).await;
    assert_eq!(old.get("/healthz").await.0, 200);
    api.hang_connections();
    let silent = timeout(Duration::from_secs(600), old.get("/healthz")).await;
    assert!(silent.is_err());
    let mut new = TestClient::new(&api).await;
    assert_eq!(new.get("/healthz").await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn a_frozen_server_responds_after_it_thaws() {
    let (api, mut client) = pair().await;
    api.set_frozen(true);
    let waiting = client.get("/healthz");
    tokio::pin!(waiting);
    assert!(
        timeout(Duration::from_secs(60), waiting.as_mut())
            .await
            .is_err()
    );
    api.set_frozen(false);
    assert_eq!(waiting.await.0, 200);
}

#[tokio::test]
async fn a_restart_closes_connections_and_may_compact_history() {
    let api = server().await;
    let since = api.version();
    api.create("pods", &pod("web")).unwrap();
    let mut client = TestClient::new(&api).await;
    assert_eq!(client.get("/healthz").await.0, 200);
    let restart = Restart {
        down: Duration::from_millis(500),
        lose_history: true,
    };
    let closed = async {
        while tokio::net::TcpStream::connect(api.address()).await.is_ok() {
            tokio::task::yield_now().await;
        }
        let mut client = TestClient::new(&api).await;
        fails(&mut client, "/healthz").await
    };
    let ((), closed) = tokio::join!(api.restart(restart), closed);
    assert!(closed, "nobody is served while it is down");
    assert!(fails(&mut client, "/healthz").await);
    let path = format!("/api/v1/pods?watch=1&resourceVersion={since}");
    let mut lines = TestClient::new(&api).await.watch(&path).await;
    assert_eq!(lines.next().await.unwrap()["object"]["code"], 410);
    assert!(api.get("pods", "", "web").is_some(), "objects are kept");
    let back = tokio::net::TcpStream::connect(api.address()).await.is_ok();
    assert!(back, "it listens again on its address");
}

#[tokio::test(start_paused = true)]
async fn backward_transitions_are_recorded_or_refused() {
    let (api, mut client) = pair().await;
    api.create("pods", &pod_on("web", "n")).unwrap();
    let path = format!("{PODS}/web/status");
    client
        .patch(&path, &json!({ "status": { "phase": "Failed" } }))
        .await;
    let (code, _) = client
        .patch(&path, &json!({ "status": { "phase": "Running" } }))
        .await;
    assert_eq!(code, 200);
    let told = api.violations();
    assert!(
        told[0].to_string().contains("the phase went from Failed"),
        "{}",
        told[0]
    );
    assert_eq!(told[0].pod, "default/web");
    let mut pod = pod_on("once", "n");
    pod["spec"]["restartPolicy"] = "Never".into();
    api.create("pods", &pod).unwrap();
    let path = format!("{PODS}/once/status");
    let status =
        |state| json!({ "status": { "containerStatuses": [{ "name": "main", "state": state }] } });
    let ended = json!({ "terminated": { "exitCode": 1 } });
    assert_eq!(client.patch(&path, &status(ended)).await.0, 200);
    let (code, error) = client.patch(&path, &status(json!({ "running": {} }))).await;
    assert_eq!(code, 422);
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("may not be transitioned to non-terminated state"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_skewed_clock_is_visible_in_new_objects() {
    let (api, mut client) = pair().await;
    let before = api.now();
    api.set_clock_skew(jiff::SignedDuration::from_hours(-2));
    let (_, made) = client.post(PODS, &pod("web")).await;
    let created: jiff::Timestamp = made["metadata"]["creationTimestamp"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!(before.duration_since(created) > jiff::SignedDuration::from_mins(119));
}

#[tokio::test(start_paused = true)]
async fn a_request_whose_response_has_nulls_is_executed() {
    let (api, mut client) = pair().await;
    rule(&api, "* pods nulls");
    let (code, made) = client.post(PODS, &pod("web")).await;
    assert_eq!((code, &made["metadata"]["name"]), (201, &json!("web")));
    let fields = made["metadata"].as_object().unwrap();
    assert!(fields.contains_key("ownerReferences") && fields["ownerReferences"].is_null());
    let kept = api.get("pods", "", "web").unwrap();
    assert!(
        !kept["metadata"]
            .as_object()
            .unwrap()
            .contains_key("ownerReferences")
    );
}
