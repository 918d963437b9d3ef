//! Sessions through the kubelet API: an agent with one pod, and clients with a certificate, as the
//! API server has.

mod client;
mod ends;
mod leaks;
mod other_runtime;
mod peer;

use std::{
    net::Ipv4Addr,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use rubelet_streaming::{Duplex, PortDialer, RemoteProcess};
use rubelet_testbed::{
    Agent,
    agent::{AgentRuntime, free_port},
    clock, images, proc, wait,
};
use serde_json::json;

use self::client::NodeClient;
use super::{Request, embedded::environment, progress, quantile, report::Results};

const TIMEOUT: Duration = Duration::from_secs(60);

/// Commands of which the median is taken, after [`WARM_UP`].
const COMMANDS: usize = 200;
const WARM_UP: usize = 20;

/// Bytes of the measured streams: 1 GiB.
const STREAM: u64 = 1 << 30;

/// Round trips of which the median is taken.
const ROUND_TRIPS: usize = 2000;

/// Idle sessions.
const SESSIONS: usize = 1000;

/// The pod.
const BOX: &str = "box";

/// The port on which the pod sends zeros, and the one on which it echoes.
const ZEROS: u16 = 9000;
const ECHO: u16 = 9001;

/// Measures `exec_session_ms_p50`, `exec_mib_s`, `portforward_mib_s`, `portforward_rtt_us_p50`,
/// `session_kib`, `sessions_1000_ok`, `sessions_10000_left`, `sessions_10000_kib`, and those of
/// [`ends`] and [`other_runtime`].
pub(super) fn measure(request: &Request<'_>, results: &mut Results) -> Result<()> {
    let embedded = environment(request)?;
    progress("start a pod for sessions");
    let (agent, client) = start(request, &embedded, Ipv4Addr::LOCALHOST, BOX, &manifest())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        for (name, value) in through(&client).await? {
            results.add(name, value);
        }
        if request.includes("session_kib") || request.includes("sessions_1000_ok") {
            progress("1000 idle sessions");
            let pid = agent.pid().context("the agent has exited")?;
            let (kib, good) = idle(&client, pid).await?;
            results.add("session_kib", kib);
            results.add("sessions_1000_ok", good);
        }
        if request.includes("sessions_10000_left") || request.includes("sessions_10000_kib") {
            progress("10,000 sessions that end");
            let pid = agent.pid().context("the agent has exited")?;
            let (left, kib) = leaks::measure(&client, pid).await?;
            results.add("sessions_10000_left", left);
            results.add("sessions_10000_kib", kib);
        }
        anyhow::Ok(())
    })?;
    drop(agent);
    if ends::NAMES.iter().any(|name| request.includes(name)) {
        ends::measure(request, &embedded, &runtime, results)?;
    }
    embedded.remove()?;
    if other_runtime::NAMES
        .iter()
        .any(|name| request.includes(name))
    {
        other_runtime::measure(request, &runtime, results)?;
    }
    peer::measure(&runtime)
}

/// The measurements that a kubelet supports as well.
async fn through(client: &NodeClient) -> Result<[(&'static str, f64); 4]> {
    progress("commands through port 10250");
    let commands = commands(client).await?;
    progress("1 GiB through standard output");
    let output = output(client).await?;
    progress("1 GiB and small messages through a forwarded port");
    let dialer = client.port_forward().await?;
    let zeros = zeros(&*dialer).await?;
    let direct = direct_round_trip(client).await?;
    let forwarded = round_trips(dialer.dial(ECHO).await?).await?;
    Ok([
        ("exec_session_ms_p50", commands),
        ("exec_mib_s", output),
        ("portforward_mib_s", zeros),
        ("portforward_rtt_us_p50", forwarded - direct),
    ])
}

/// An agent with this pod, whose kubelet API is at this address.
fn start(
    request: &Request<'_>,
    runtime: &impl AgentRuntime,
    address: Ipv4Addr,
    pod: &str,
    manifest: &str,
) -> Result<(Agent, NodeClient)> {
    let builder = Agent::builder(runtime).program(&request.program);
    let port = free_port(address.into())?;
    let (ca, credentials) = client::credentials()?;
    let file = builder.scratch().dir().join("client-ca.crt");
    std::fs::write(&file, ca)?;
    let agent = builder
        .config("address", address.to_string())
        .config("port", port)
        .config(
            "authentication",
            json!({
                "anonymous": { "enabled": false },
                "webhook": { "enabled": false },
                "x509": { "clientCAFile": file },
            }),
        )
        .config("authorization", json!({ "mode": "AlwaysAllow" }))
        .manifest("pod.yaml", manifest)
        .start()?;
    agent.wait_notification("the pod is ready", TIMEOUT, |state| {
        let status = state.status();
        status.is_some_and(|status| status.starts_with("1/1 pods ready"))
    })?;
    let pod = agent.full_name(pod);
    let client = NodeClient::new((address, port).into(), pod, &credentials)?;
    Ok((agent, client))
}

fn manifest() -> String {
    let script = format!(
        "nc -ll -p {ZEROS} -e dd if=/dev/zero bs=1M count=1024 & nc -ll -p {ECHO} -e cat & \
         while :; do sleep 3600; done"
    );
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": BOX },
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [{
                "name": "main",
                "image": images::BUSYBOX_IMAGE,
                "imagePullPolicy": "IfNotPresent",
                "command": ["sh", "-c", script],
            }],
        },
    })
    .to_string()
}

fn millis(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}

/// From the request, with its connection and handshake, to the first byte of `echo`.
async fn commands(client: &NodeClient) -> Result<f64> {
    let mut times = Vec::new();
    for _ in 0..WARM_UP + COMMANDS {
        let start = clock::now();
        let mut session = client.exec(&["echo", "hello"], false).await?;
        let first = read(&mut session).await?;
        times.push(millis(start));
        ensure!(first.as_deref() == Some(b"hello\n"), "echo said {first:?}");
        while read(&mut session).await?.is_some() {}
        ensure!(session.exit.await?.code() == Ok(0), "echo failed");
    }
    times.drain(..WARM_UP);
    times.sort_by(f64::total_cmp);
    Ok(quantile(&times, 0.50))
}

async fn read(session: &mut RemoteProcess) -> Result<Option<Bytes>> {
    let stdout = session.stdout.as_mut().context("no standard output")?;
    Ok(stdout.read().await?)
}

/// The whole standard output.
async fn text(session: &mut RemoteProcess) -> Result<String> {
    let mut said = Vec::new();
    while let Some(bytes) = read(session).await? {
        said.extend_from_slice(&bytes);
    }
    Ok(String::from_utf8_lossy(&said).into_owned())
}

async fn output(client: &NodeClient) -> Result<f64> {
    let command = ["dd", "if=/dev/zero", "bs=1M", "count=1024"];
    let mut session = client.exec(&command, false).await?;
    let (mut total, mut begun) = (0, None);
    while let Some(bytes) = read(&mut session).await? {
        begun.get_or_insert_with(clock::now);
        total += bytes.len() as u64;
    }
    mib_per_second(total, begun)
}

async fn zeros(dialer: &dyn PortDialer) -> Result<f64> {
    let mut connection = dialer.dial(ZEROS).await?;
    let (mut total, mut begun) = (0, None);
    while let Some(bytes) = connection.source.read().await? {
        begun.get_or_insert_with(clock::now);
        total += bytes.len() as u64;
    }
    mib_per_second(total, begun)
}

fn mib_per_second(total: u64, begun: Option<Instant>) -> Result<f64> {
    ensure!(total == STREAM, "{total} of {STREAM} bytes came");
    let seconds = begun.context("no data arrived")?.elapsed().as_secs_f64();
    Ok(super::mib(total) / seconds)
}

/// The median round trip of one byte, in microseconds.
async fn round_trips(mut connection: Duplex) -> Result<f64> {
    let mut times = Vec::new();
    for _ in 0..WARM_UP + ROUND_TRIPS {
        let start = clock::now();
        connection.sink.write(Bytes::from_static(b"x")).await?;
        let back = connection.source.read().await?;
        times.push(millis(start) * 1000.0);
        ensure!(back.as_deref() == Some(b"x"), "{back:?} came back");
    }
    times.drain(..WARM_UP);
    times.sort_by(f64::total_cmp);
    Ok(quantile(&times, 0.50))
}

/// The same without an agent: from this machine to the pod's own address.
async fn direct_round_trip(client: &NodeClient) -> Result<f64> {
    let mut session = client.exec(&["hostname", "-i"], false).await?;
    let address = text(&mut session).await?;
    let address: std::net::IpAddr = address.trim().parse().context("the pod has no address")?;
    let stream = tokio::net::TcpStream::connect((address, ECHO)).await?;
    stream.set_nodelay(true)?;
    let fd: std::os::fd::OwnedFd = stream.into_std()?.into();
    round_trips(Duplex {
        source: Box::new(rubelet_streaming::FdSource::new(fd.try_clone()?, None)?),
        sink: Box::new(rubelet_streaming::FdSink::new(fd)?),
    })
    .await
}

/// The agent's private memory for each of many idle sessions, and how many of them still work.
async fn idle(client: &NodeClient, pid: u32) -> Result<(f64, f64)> {
    let private = || proc::private_bytes(pid).context("the agent has exited");
    // Threads, arenas and code pages of the first sessions are not part of the cost of one more.
    let mut first = Vec::new();
    for _ in 0..WARM_UP {
        first.push(client.exec(&["cat"], true).await?);
    }
    wait::pass(Duration::from_secs(2));
    let before = private()?;
    let mut sessions = Vec::new();
    for _ in 0..SESSIONS {
        sessions.push(client.exec(&["cat"], true).await?);
    }
    wait::pass(Duration::from_secs(5));
    let used = private()?.saturating_sub(before);
    let mut good = 0_u32;
    for session in &mut sessions {
        let Some(stdin) = &mut session.stdin else {
            bail!("a session has no input");
        };
        stdin.write(Bytes::from_static(b"still here")).await?;
        stdin.close().await?;
        let mut said = Vec::new();
        while let Some(bytes) = read(session).await? {
            said.extend_from_slice(&bytes);
        }
        good += u32::from(said == b"still here");
    }
    #[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^52 bytes")]
    let kib = used as f64 / 1024.0 / SESSIONS as f64;
    Ok((kib, f64::from(good)))
}
