//! Probes from inside pods: in which network namespace they run, and how they end.

use std::os::fd::{AsRawFd as _, OwnedFd};

use futures_util::StreamExt as _;
use rubelet_cri::{CriErrorKind, v1};
use rubelet_host::{
    netlink::{Changes, RouteSocket},
    netns,
};
use rubelet_server::{NetRefusal, NetRequest, NetStream, NodeView as _, PodRef};
use serde_json::{Value, json};

use super::fixture::{TestView, entry};

fn request(probe: Value) -> NetRequest {
    NetRequest {
        pod: PodRef {
            namespace: "default".to_owned(),
            name: "web-n1".to_owned(),
        },
        probe,
        stop: None,
    }
}

fn ping(count: Option<u64>) -> Value {
    json!({ "probe": "ping", "targets": ["127.0.0.1"],
            "options": { "count": count, "intervalMs": 10, "timeoutMs": 60_000 } })
}

/// A view of a pod whose sandbox has its own network, with loopback on if wanted.
async fn with_network(loopback: bool) -> (TestView, OwnedFd) {
    let namespace = netns::create().unwrap();
    if loopback {
        netns::within(&namespace, || {
            let mut changes = Changes::default();
            changes.set_up("lo");
            let mut socket = RouteSocket::open().unwrap();
            socket.apply(changes, || "switch lo on".to_owned()).unwrap();
        })
        .unwrap();
    }
    let seen = TestView::with_runtime(true);
    seen.put(entry()).await;
    let path = format!("/proc/{}/fd/{}", std::process::id(), namespace.as_raw_fd());
    *seen.runtime.info.lock().unwrap() = json!({ "networkNamespace": path }).to_string();
    seen.runtime.sandboxes.lock().unwrap().push(v1::PodSandbox {
        id: "box".to_owned(),
        ..v1::PodSandbox::default()
    });
    (seen, namespace)
}

/// The reports up to the end.
async fn reports(lines: NetStream) -> Vec<Value> {
    let lines: Vec<_> = lines.collect().await;
    let lines = lines.into_iter().map(|line| line.unwrap());
    lines
        .map(|line| serde_json::from_slice(&line).unwrap())
        .collect()
}

#[tokio::test]
async fn a_probe_runs_in_the_network_of_the_pod() {
    if !rubelet_needs::root() {
        return;
    }
    for loopback in [true, false] {
        let (seen, _namespace) = with_network(loopback).await;
        let lines = match seen.view.net(request(ping(Some(3)))).await {
            Ok(lines) => reports(lines).await,
            // The host's loopback would have answered.
            Err(NetRefusal::Internal(error)) => {
                assert!(!loopback && error.contains("cannot reach"), "{error}");
                continue;
            }
            Err(refusal) => panic!("{refusal:?}"),
        };
        let last = lines.last().unwrap();
        assert_eq!(
            (&last["event"], &last["sent"]),
            (&json!("summary"), &json!(3))
        );
        assert_eq!(last["received"], if loopback { 3 } else { 0 });
    }
}

#[tokio::test]
async fn a_check_looks_at_the_interfaces_of_the_pod() {
    if !rubelet_needs::root() {
        return;
    }
    let (seen, _namespace) = with_network(true).await;
    let probe = json!({ "probe": "check", "outside": "127.0.0.1" });
    let lines = reports(seen.view.net(request(probe)).await.unwrap()).await;
    let of = |check: &str| {
        let found = lines.iter().find(|line| line["check"] == check);
        let found = found.unwrap_or_else(|| panic!("{check}: {lines:?}"));
        (
            found["outcome"].as_str().unwrap(),
            found["detail"].as_str().unwrap(),
        )
    };
    assert_eq!(
        of("address"),
        ("wrong", "there is no interface but loopback")
    );
    assert_eq!(of("gateway"), ("wrong", "there is no default route"));
    assert_eq!(of("dns"), ("wrong", "the pod has no nameserver"));
    assert_eq!(of("name"), ("skipped", "give a name with --name"));
    assert_eq!(of("service"), ("skipped", "this node has no API server"));
    assert_eq!(of("apiServer"), ("skipped", "this node has no API server"));
    assert_eq!(of("outside").0, "ok");
    assert_eq!(of("mtu").0, "ok");
}

#[tokio::test]
async fn a_path_starts_in_the_network_of_the_pod() {
    if !rubelet_needs::root() {
        return;
    }
    for (target, outcome) in [("127.0.0.1", "ok"), ("192.0.2.1", "wrong")] {
        let (seen, _namespace) = with_network(true).await;
        let probe = json!({ "probe": "path", "target": target });
        let lines = reports(seen.view.net(request(probe)).await.unwrap()).await;
        let result = lines.last().unwrap();
        assert_eq!(result["event"], "result", "{lines:?}");
        assert_eq!(result["outcome"], outcome, "{lines:?}");
    }
    let (seen, _namespace) = with_network(true).await;
    let probe = json!({ "probe": "path", "target": "pod/default/db" });
    match seen.view.net(request(probe)).await {
        Err(NetRefusal::Invalid(why)) => assert_eq!(
            why,
            "target pod/default/db: there is no such pod on this node"
        ),
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("it runs"),
    }
}

#[tokio::test]
async fn a_probe_ends_with_its_results_when_the_client_or_the_pod_ends_it() {
    if !rubelet_needs::root() {
        return;
    }
    let (seen, _namespace) = with_network(true).await;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let mut endless = request(ping(None));
    endless.stop = Some(Box::pin(async move {
        let _ = stopped.await;
    }));
    let mut lines = seen.view.net(endless).await.unwrap();
    let first = lines.next().await.unwrap().unwrap();
    let first: Value = serde_json::from_slice(&first).unwrap();
    assert_eq!(first["event"], "start");
    drop(stop);
    assert_eq!(reports(lines).await.last().unwrap()["event"], "summary");
    // The sandbox is gone at the next change of the pod.
    let lines = seen.view.net(request(ping(None))).await.unwrap();
    seen.runtime.info.lock().unwrap().clear();
    let mut changed = entry();
    changed.wake_at = Some(jiff::Timestamp::UNIX_EPOCH);
    seen.put(changed).await;
    assert_eq!(reports(lines).await.last().unwrap()["event"], "summary");
    // So is the pod.
    let (seen, _namespace) = with_network(true).await;
    let lines = seen.view.net(request(ping(None))).await.unwrap();
    seen.board.remove(&entry().pod.uid);
    assert_eq!(reports(lines).await.last().unwrap()["event"], "summary");
}

#[tokio::test]
async fn a_client_that_goes_away_ends_its_probe() {
    if !rubelet_needs::root() {
        return;
    }
    let (seen, _namespace) = with_network(true).await;
    // More in all than may run at a time.
    for _ in 0..3 {
        let mut running = Vec::new();
        loop {
            match seen.view.net(request(ping(None))).await {
                Ok(lines) => running.push(lines),
                Err(NetRefusal::Busy) => break,
                Err(other) => panic!("{other:?}"),
            }
            assert!(running.len() <= 64);
        }
        drop(running);
        // Their threads end soon.
        let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(60);
        while seen.view.net(request(ping(Some(1)))).await.is_err() {
            assert!(tokio::time::Instant::now() < deadline);
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_run_says_why() {
    let seen = TestView::with_runtime(true);
    let refusal = async |probe: Value| match seen.view.net(request(probe)).await {
        Ok(_) => panic!("it runs"),
        Err(refusal) => refusal,
    };
    assert_eq!(refusal(ping(Some(1))).await, NetRefusal::NoPod);
    seen.put(entry()).await;
    assert_eq!(refusal(ping(Some(1))).await, NetRefusal::NotReady);
    for (probe, error) in [
        (json!({}), "missing field `probe`"),
        (json!({ "probe": "ping", "targets": [] }), "0 targets"),
        (
            json!({ "probe": "trace", "target": "a", "options": { "max": -1 } }),
            "invalid value",
        ),
    ] {
        match refusal(probe).await {
            NetRefusal::Invalid(found) => assert!(found.contains(error), "{found}"),
            other => panic!("{other:?}"),
        }
    }
    seen.runtime.sandboxes.lock().unwrap().push(v1::PodSandbox {
        id: "box".to_owned(),
        ..v1::PodSandbox::default()
    });
    assert_eq!(refusal(ping(Some(1))).await, NetRefusal::NotReady);
    // An ordinary file is no network namespace, and no namespace of another type is entered.
    for (path, error) in [
        (
            "/etc/passwd",
            "there is no network namespace at /etc/passwd",
        ),
        ("/proc/self/ns/uts", "cannot open a socket"),
    ] {
        *seen.runtime.info.lock().unwrap() = json!({ "networkNamespace": path }).to_string();
        match refusal(ping(Some(1))).await {
            NetRefusal::Internal(found) => assert!(found.contains(error), "{found}"),
            other => panic!("{other:?}"),
        }
    }
    *seen.runtime.info.lock().unwrap() = "{}".to_owned();
    assert!(matches!(
        refusal(ping(Some(1))).await,
        NetRefusal::Internal(_)
    ));
    *seen.runtime.error.lock().unwrap() = Some(CriErrorKind::Unavailable);
    assert!(matches!(
        refusal(ping(Some(1))).await,
        NetRefusal::Internal(_)
    ));
}
