//! Connections to ports of pods.

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    sync::Arc,
};

use bytes::Bytes;
use rubelet_cri::{CriResult, RuntimeService, v1};
use rubelet_host::netns;
use rubelet_runtime::EmbeddedRuntime;
use rubelet_streaming::{PortDialer, Sessions};

use crate::fixture::{Fixture, PATIENCE, read_source, remove_pod, run_pod};

/// Opens a pod for connections. The CRI has a call of that name, too.
async fn port_forward(runtime: &EmbeddedRuntime, sandbox: &str) -> CriResult<Arc<dyn PortDialer>> {
    Sessions::port_forward(runtime, sandbox).await
}

/// Answers one connection: the line that it got, once the client has closed its half, and more.
fn serve(listener: TcpListener) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        let mut text = String::new();
        connection.read_to_string(&mut text).unwrap();
        write!(connection, "got {text}").unwrap();
    })
}

/// Listens in the network of a pod.
async fn listen(runtime: &EmbeddedRuntime, sandbox: &str, address: &'static str) -> TcpListener {
    let request = v1::PodSandboxStatusRequest {
        pod_sandbox_id: sandbox.to_owned(),
        verbose: true,
    };
    let status = runtime.pod_sandbox_status(request).await.unwrap();
    let info: serde_json::Value = serde_json::from_str(&status.info["info"]).unwrap();
    let path = info["networkNamespace"].as_str().unwrap();
    let namespace = netns::open(path.as_ref()).unwrap();
    netns::within(&namespace, || TcpListener::bind(address))
        .unwrap()
        .unwrap()
}

async fn ask(runtime: &EmbeddedRuntime, sandbox: &str, listener: TcpListener) {
    let port = listener.local_addr().unwrap().port();
    let server = serve(listener);
    let dialer = port_forward(runtime, sandbox).await.unwrap();
    let mut connection = dialer.dial(port).await.unwrap();
    let text = Bytes::from_static(b"hello");
    connection.sink.write(text).await.unwrap();
    // A half-close: the answer comes after it.
    connection.sink.close().await.unwrap();
    let answer = tokio::time::timeout(PATIENCE, read_source(&mut *connection.source)).await;
    assert_eq!(answer.unwrap(), b"got hello");
    server.join().unwrap();
}

pub(crate) async fn a_port_of_a_pod_answers_by_ipv4_and_ipv6(fixture: &Fixture) {
    let runtime = fixture.runtime().await;
    let pod = fixture.pod("ports");
    let sandbox = run_pod(&runtime, &pod).await;
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let listener = listen(&runtime, &sandbox, address).await;
        ask(&runtime, &sandbox, listener).await;
    }
    let dialer = port_forward(&runtime, &sandbox).await.unwrap();
    let nothing = match dialer.dial(9).await {
        Ok(_) => panic!("nothing listens there"),
        Err(error) => error.message,
    };
    for part in ["port 9", "127.0.0.1:9: Connection refused", "[::1]:9: "] {
        assert!(nothing.contains(part), "{nothing}");
    }
    remove_pod(&runtime, &sandbox).await;
    assert!(dialer.dial(9).await.is_err(), "the pod is gone");
    let Err(gone) = port_forward(&runtime, &sandbox).await else {
        panic!("the pod is gone");
    };
    assert!(gone.is_not_found(), "{gone}");
}

pub(crate) async fn a_pod_on_the_hosts_network_has_the_hosts_ports(fixture: &Fixture) {
    let runtime = fixture.runtime().await;
    let pod = fixture.host_network("hostports");
    let sandbox = run_pod(&runtime, &pod).await;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    ask(&runtime, &sandbox, listener).await;
    let stop = v1::StopPodSandboxRequest {
        pod_sandbox_id: sandbox.clone(),
    };
    runtime.stop_pod_sandbox(stop).await.unwrap();
    let Err(error) = port_forward(&runtime, &sandbox).await else {
        panic!("the pod is stopped");
    };
    assert!(error.message.contains("not ready"), "{error}");
    remove_pod(&runtime, &sandbox).await;
}
