//! From the end of one side of a session until the other side is told.

use std::{thread::JoinHandle, time::SystemTime};

use anyhow::{Context as _, Result, anyhow, ensure};
use bytes::Bytes;
use rubelet_streaming::RemoteProcess;
use rubelet_testbed::{Embedded, clock, images, proc};
use serde_json::json;
use tokio::{net::TcpStream, runtime::Runtime, task::spawn_blocking};

use super::{
    super::{Request, progress, quantile, report::Results},
    client::NodeClient,
    read, start,
};

mod neighbour;

use neighbour::Neighbour;

/// What is measured here.
pub(super) const NAMES: [&str; 3] = [
    "session_end_client_ms_p50",
    "session_end_container_ms_p50",
    "session_end_cut_ms_max",
];

const POD: &str = "ends";

/// Sessions of each kind of end.
const ENDS: usize = 20;
/// The container that no benchmark ends.
const STAYS: usize = ENDS;

/// Echoes its input. These arguments are only used here.
const ECHO: [&str; 2] = ["cat", "-"];

/// Measures [`NAMES`].
pub(super) fn measure(
    request: &Request<'_>,
    embedded: &Embedded,
    runtime: &Runtime,
    results: &mut Results,
) -> Result<()> {
    progress("ends of sessions");
    let neighbour = Neighbour::start()?;
    let (agent, client) = start(request, embedded, neighbour::NODE, POD, &manifest())?;
    runtime.block_on(async {
        let gone = client_gone(&client).await?;
        results.add("session_end_client_ms_p50", quantile(&gone, 0.50));
        let ended = container_ended(&client).await?;
        results.add("session_end_container_ms_p50", quantile(&ended, 0.50));
        let cut = network_cut(&client, neighbour).await?;
        results.add("session_end_cut_ms_max", quantile(&cut, 1.0));
        anyhow::Ok(())
    })?;
    drop(agent);
    Ok(())
}

fn container(number: usize) -> String {
    format!("c{number}")
}

/// The arguments of a container's first process.
fn process(number: usize) -> [String; 2] {
    ["sleep".to_owned(), (1_000_000 + number).to_string()]
}

fn manifest() -> String {
    let container = |number: usize| {
        json!({
            "name": container(number),
            "image": images::BUSYBOX_IMAGE,
            "imagePullPolicy": "IfNotPresent",
            "command": process(number),
        })
    };
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": POD },
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "restartPolicy": "Never",
            "containers": (0..=STAYS).map(container).collect::<Vec<_>>(),
        },
    })
    .to_string()
}

/// From the end of a client until its process, which ends with its input, is gone.
async fn client_gone(client: &NodeClient) -> Result<Vec<f64>> {
    let mut times = Vec::new();
    for _ in 0..ENDS {
        let (session, ended) = echo(client, client.connect().await?).await?;
        let at = clock::wall();
        drop(session);
        times.push(millis(at, told(ended).await?)?);
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}

/// From the kill of a container until the client of a command in it has the status.
async fn container_ended(client: &NodeClient) -> Result<Vec<f64>> {
    let mut times = Vec::new();
    for number in 0..ENDS {
        let stream = client.connect().await?;
        let command = ["sh", "-c", "echo here; exec sleep 1000000"];
        let mut session = client
            .exec_over(stream, &container(number), &command, false)
            .await?;
        read(&mut session).await?;
        let first = process(number);
        let at = proc::kill9(pid_of(&[&first[0], &first[1]])?)?;
        while read(&mut session).await?.is_some() {}
        let code = session.exit.await?.code();
        times.push(millis(at, clock::wall())?);
        ensure!(code == Ok(137), "the session ended with {code:?}");
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}

/// From the cut of the network of several clients until their processes are gone.
async fn network_cut(client: &NodeClient, neighbour: Neighbour) -> Result<Vec<f64>> {
    let (mut sessions, mut ends) = (Vec::new(), Vec::new());
    for _ in 0..ENDS {
        let stream = neighbour.connect(client.address())?;
        let (session, ended) = echo(client, TcpStream::from_std(stream)?).await?;
        sessions.push(session);
        ends.push(ended);
    }
    let at = clock::wall();
    neighbour.cut()?;
    let mut times = Vec::new();
    for ended in ends {
        times.push(millis(at, told(ended).await?)?);
    }
    drop(sessions);
    times.sort_by(f64::total_cmp);
    Ok(times)
}

/// The end of a process, once there is one.
type ProcessEnd = JoinHandle<Result<SystemTime>>;

/// A session with [`ECHO`], of which there are others with other clients.
async fn echo(client: &NodeClient, stream: TcpStream) -> Result<(RemoteProcess, ProcessEnd)> {
    let before = pids_of(&ECHO);
    let mut session = client
        .exec_over(stream, &container(STAYS), &ECHO, true)
        .await?;
    let stdin = session.stdin.as_mut().context("a session has no input")?;
    stdin.write(Bytes::from_static(b"here")).await?;
    read(&mut session).await?;
    let pids = pids_of(&ECHO);
    let new = pids.iter().find(|pid| !before.contains(pid));
    let ended = proc::end_of(*new.context("the command does not run")?)?;
    Ok((session, ended))
}

async fn told(ended: ProcessEnd) -> Result<SystemTime> {
    let joined = spawn_blocking(move || ended.join()).await?;
    joined.map_err(|_| anyhow!("the thread that waits for a process died"))?
}

fn millis(from: SystemTime, to: SystemTime) -> Result<f64> {
    Ok(to.duration_since(from)?.as_secs_f64() * 1000.0)
}

/// The process with exactly these arguments.
fn pid_of(arguments: &[&str]) -> Result<u32> {
    let found = pids_of(arguments);
    let first = found.first().copied();
    first.with_context(|| format!("{arguments:?} does not run"))
}

fn pids_of(arguments: &[&str]) -> Vec<u32> {
    let line = format!("{}\0", arguments.join("\0"));
    let mut pids = proc::all_pids();
    pids.retain(|pid| {
        let of = std::fs::read(format!("/proc/{pid}/cmdline"));
        of.is_ok_and(|of| of == line.as_bytes())
    });
    pids
}
