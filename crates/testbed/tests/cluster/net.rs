//! `rubelet net check` in a cluster whose DNS and Services are broken, and then repaired. Both are on
//! loopback inside the pod's network namespace.

use std::net::{TcpListener, UdpSocket};
use std::{fs::File, thread};

use nix::sched::{CloneFlags, setns};
use rubelet_testbed::{agent::CliOutput, wait::until};
use serde_json::json;

use crate::joined::{Joined, WAITS, pod};
use crate::outside::TIMEOUT;

/// A loopback address that nothing else uses.
const DNS: &str = "127.88.0.53";

/// Opens a socket in the network namespace of the pod, on a separate thread.
fn in_pod<T: Send>(joined: &Joined, open: impl FnOnce() -> T + Send) -> T {
    let container = &joined.truth.containers().unwrap()[0];
    let pid = joined.truth.pid(&container.id).unwrap();
    let namespace = File::open(format!("/proc/{pid}/ns/net")).unwrap();
    let inside = || {
        setns(namespace, CloneFlags::CLONE_NEWNET).unwrap();
        open()
    };
    thread::scope(|scope| scope.spawn(inside).join().unwrap())
}

/// A DNS server that resolves every name, until the test's process exits.
fn serve_names(joined: &Joined) {
    let socket = in_pod(joined, || UdpSocket::bind((DNS, 53)).unwrap());
    thread::spawn(move || {
        let mut query = [0; 512];
        while let Ok((length, client)) = socket.recv_from(&mut query) {
            let mut answer = query[..length].to_vec();
            // A response without an error, with one record: the queried name, type A, class IN, TTL 5
            // s, 127.0.0.1.
            answer[2..4].copy_from_slice(&[0x81, 0x80]);
            answer[6..12].copy_from_slice(&[0, 1, 0, 0, 0, 0]);
            answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, 127, 0, 0, 1]);
            let _ = socket.send_to(&answer, client);
        }
    });
}

/// Redirects the Service of the API server to a loopback port.
fn serve_at(joined: &Joined, port: u16) {
    let spec = json!({ "spec": {
        "clusterIP": "127.0.0.1",
        "clusterIPs": ["127.0.0.1"],
        "ports": [{ "name": "https", "port": port, "protocol": "TCP" }],
    }});
    // The list of ports is replaced.
    let words = ["patch", "service", "kubernetes", "--type=merge", "-p"];
    joined
        .kubectl
        .stdout(&[&words[..], &[&spec.to_string()]].concat());
}

/// Waits until the check prints this; returns its exit code.
fn says(joined: &Joined, part: &str) -> CliOutput {
    let words = [
        "net",
        "check",
        "web",
        "--name",
        "db.example",
        "--outside",
        "127.0.0.1",
    ];
    let mut last = None;
    until(part, TIMEOUT, || {
        let ended = joined.agent.cli(&words)?;
        let found = ended.stdout.contains(part);
        last = Some(ended);
        Ok(found.then_some(()))
    })
    .unwrap_or_else(|error| panic!("{error:#}: {last:?}"));
    last.unwrap()
}

#[test]
fn a_check_reports_a_broken_dns_then_a_broken_service() {
    let joined = Joined::start_on_model("worker");
    serve_at(&joined, 1);
    let mut web = pod("web", WAITS);
    web["spec"]["dnsPolicy"] = "None".into();
    web["spec"]["dnsConfig"] = json!({ "nameservers": [DNS] });
    joined.create(&web);
    joined.wait_ready("web");

    let broken = says(&joined, "wrong    Service ");
    assert_eq!(broken.code, 1, "{broken:?}");
    for line in [
        "wrong    DNS         127.88.0.53 is not reached: Connection refused\n",
        "skipped  name        no nameserver answers\n",
        "wrong    Service     kubernetes.default at 127.0.0.1:1: Connection refused\n",
        "The first thing that is wrong is the DNS: 127.88.0.53 is not reached: Connection refused.\n",
        "Look whether the DNS of the cluster runs",
    ] {
        assert!(broken.stdout.contains(line), "{line}: {broken:?}");
    }

    serve_names(&joined);
    let broken = says(&joined, "ok       DNS ");
    assert_eq!(broken.code, 1, "{broken:?}");
    for line in [
        "ok       name        db.example is 127.0.0.1\n",
        "The first thing that is wrong is the Service: kubernetes.default at 127.0.0.1:1: Connection refused.\n",
        "Look whether the proxy of Services (kube-proxy) runs on this node",
    ] {
        assert!(broken.stdout.contains(line), "{line}: {broken:?}");
    }

    let service = in_pod(&joined, || TcpListener::bind("127.0.0.1:0").unwrap());
    serve_at(&joined, service.local_addr().unwrap().port());
    let mended = says(&joined, "ok       Service ");
    assert_eq!(mended.code, 0, "{mended:?}");
    assert!(!mended.stdout.contains("wrong"), "{mended:?}");
}
