//! An agent with 1000 probes: 25 pods with 20 containers, each with a liveness and a readiness
//! probe against a web server beside the agent.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rubelet_testbed::{Agent, Containerd, clock, containerd::HostPorts, images, proc, wait};

use super::report::Results;
use super::{Request, progress};

const PODS: usize = 25;
const CONTAINERS: usize = 20;
const TIMEOUT: Duration = Duration::from_secs(600);
/// The span over which CPU time is measured: six rounds of all probes.
const SPAN: Duration = Duration::from_secs(60);

/// Measures `probe_cpu_pct_1000`.
pub(super) fn measure(request: &Request<'_>, results: &mut Results) -> Result<()> {
    let server = Server::start()?;
    let containerd = Containerd::start_with(HostPorts::None)?;
    let mut builder = Agent::builder(&containerd).program(&request.program);
    for number in 0..PODS {
        let file = format!("pod-{number:03}.yaml");
        builder = builder.manifest(file, manifest(number, server.port));
    }
    progress("start 500 containers with 1000 probes");
    let agent = builder.start()?;
    let all_ready = format!("{PODS}/{PODS} pods ready");
    agent.wait_notification("all pods are ready", TIMEOUT, |state| {
        state
            .status()
            .is_some_and(|status| status.starts_with(&all_ready))
    })?;
    wait::pass(Duration::from_secs(10));
    progress("60 s of probes");
    let pid = agent.pid().context("the agent has exited")?;
    let used = || proc::cpu_time(pid).context("the agent has exited");
    let (start, before, asked) = (clock::now(), used()?, server.requests());
    wait::pass(SPAN);
    let used = used()? - before;
    let rounds = SPAN.as_secs() as usize / 10;
    let expected = PODS * CONTAINERS * 2 * rounds;
    let asked = server.requests() - asked;
    ensure!(
        asked * 10 > expected * 9,
        "{asked} requests within 60 s, expected {expected}"
    );
    results.add(
        "probe_cpu_pct_1000",
        used.as_secs_f64() / start.elapsed().as_secs_f64() * 100.0,
    );
    drop(agent);
    containerd.remove()
}

fn manifest(number: usize, port: u16) -> String {
    let probe =
        format!("{{httpGet: {{host: 127.0.0.1, port: {port}, path: /ok}}, periodSeconds: 10}}");
    let mut text = format!(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: pod-{number:03}\nspec:\n  containers:\n"
    );
    for container in 0..CONTAINERS {
        text.push_str(&format!(
            "  - name: c{container}\n    image: {}\n    imagePullPolicy: IfNotPresent\n    \
             livenessProbe: {probe}\n    readinessProbe: {probe}\n",
            images::PAUSE
        ));
    }
    text
}

/// A web server that answers 200 to everything and counts.
struct Server {
    port: u16,
    requests: std::sync::Arc<std::sync::atomic::AtomicUsize>,
}

impl Server {
    fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("cannot listen")?;
        let port = listener.local_addr()?.port();
        let requests = std::sync::Arc::<std::sync::atomic::AtomicUsize>::default();
        let counted = std::sync::Arc::clone(&requests);
        // The thread ends with this program.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                // A client that disconnects is not an error.
                let _ = answer(stream);
            }
        });
        Ok(Self { port, requests })
    }

    fn requests(&self) -> usize {
        self.requests.load(std::sync::atomic::Ordering::Relaxed)
    }
}

fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut request = [0; 1024];
    let mut length = 0;
    while !request[..length].ends_with(b"\r\n\r\n") {
        match stream.read(&mut request[length..])? {
            0 => return Ok(()),
            more => length += more,
        }
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
}
