//! Probes from inside pods: the network namespace of the pod's sandbox is opened once, and a thread
//! opens the sockets of the probe there. Nothing else of the pod is entered.

mod inputs;
mod points;

use std::{
    io,
    net::{IpAddr, SocketAddr},
    ops::ControlFlow,
    os::fd::{AsFd as _, OwnedFd},
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    thread,
    time::Duration,
};

use bytes::Bytes;
use futures_util::stream;
use rubelet_base::ErrorChain;
use rubelet_cri::v1;
use rubelet_host::netns;
use rubelet_netprobe::{
    packet::Family,
    path::PathInputs,
    request::{ProbeInputs, ProbeRequest},
    sockets::{NamespaceOf, OpenSocket, OwnNamespace},
    wait::{StopHandle, stop_pair},
};
use rubelet_node_state::pod_board::{PodBoard, PodEntry};
use rubelet_server::{NetRefusal, NetRequest, NetStream, PodRef, SessionError};
use serde_json::Value;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    task::spawn_blocking,
    time::{Instant, timeout_at},
};

use crate::{
    ViewParts,
    sessions::{SessionParts, of_container, ready_sandbox},
};

pub use inputs::{Nameservers, NetworkFacts};
use points::PathEnd;

/// Concurrent probes. Each has a thread.
pub(super) const PROBES: usize = 16;
/// Lines that wait for the client.
const LINES: usize = 256;
/// Timeout of looking up the names of targets.
const RESOLVE: Duration = Duration::from_secs(10);

/// Runs a probe from inside a pod.
pub(super) async fn net(
    view: &ViewParts,
    probes: &Arc<Semaphore>,
    request: NetRequest,
) -> Result<NetStream, NetRefusal> {
    let probe: ProbeRequest = serde_json::from_value(request.probe)
        .map_err(|error| NetRefusal::Invalid(format!("probe: {error}")))?;
    probe
        .check()
        .map_err(|error| NetRefusal::Invalid(format!("probe: {error}")))?;
    let (pods, parts) = (&view.pods, &view.sessions);
    let entry = of_container(pods, &request.pod, None).map_err(refused)?;
    let sandbox = ready_sandbox(parts, &entry).await.map_err(refused)?;
    let place = namespace_of(parts, &entry, &sandbox).await?;
    let (addresses, inputs) = match &probe {
        ProbeRequest::Check { name, outside } => {
            let addresses = resolve(&probe).await?;
            let outside = outside.as_deref().zip(addresses.first().copied());
            let (facts, objects) = (&view.network, &view.objects);
            let namespace = place.as_ref();
            let inputs =
                inputs::inputs(facts, objects, &entry, namespace, name.as_deref(), outside);
            let inputs = inputs.await.map_err(NetRefusal::Internal)?;
            (Vec::new(), ProbeInputs::Check(Box::new(inputs)))
        }
        ProbeRequest::Path { target, .. } => {
            let (address, to) = path_end(view, &probe, target).await?;
            let inputs = path_inputs(&entry, place.clone(), address, to).await?;
            (Vec::new(), ProbeInputs::Path(inputs))
        }
        _ => (resolve(&probe).await?, ProbeInputs::None),
    };
    let permit = Arc::clone(probes)
        .try_acquire_owned()
        .map_err(|_| NetRefusal::Busy)?;
    let (stop, mut lines) = start(probe, addresses, inputs, place, permit)?;
    // Sockets are opened before anything is reported.
    let first = match lines.recv().await {
        Some(Ok(line)) => Some(line),
        Some(Err(refusal)) => return Err(refusal),
        None => None,
    };
    let gone = until_gone(Arc::clone(pods), entry, parts.clone(), sandbox);
    let ended: Ended = match request.stop {
        None => Box::pin(gone),
        // Cancel safe: both only wait.
        Some(stopped) => Box::pin(async move {
            tokio::select! {
                () = stopped => {}
                () = gone => {}
            }
        }),
    };
    let reports = Reports {
        first,
        lines,
        running: Some((stop, ended)),
    };
    Ok(Box::pin(stream::unfold(reports, Reports::next)))
}

/// The network namespace of a pod; `None` for that of the node.
async fn namespace_of(
    parts: &SessionParts,
    entry: &PodEntry,
    sandbox: &str,
) -> Result<Option<Arc<OwnedFd>>, NetRefusal> {
    match entry.pod.spec.host_network {
        true => Ok(None),
        false => Ok(Some(Arc::new(network_namespace(parts, sandbox).await?))),
    }
}

/// The address of the target of a path, and the pod of this node that has it, if one has.
async fn path_end(
    view: &ViewParts,
    probe: &ProbeRequest,
    target: &str,
) -> Result<(SocketAddr, Option<PathEnd>), NetRefusal> {
    let invalid = |why: &str| NetRefusal::Invalid(format!("target {target}: {why}"));
    let Some(pod) = target.strip_prefix("pod/") else {
        let mut addresses = resolve(probe).await?.into_iter();
        let address = addresses
            .next()
            .ok_or_else(|| invalid("it has no address"))?;
        let mut rows = view.pods.list().into_iter().map(|(_, _, entry)| entry);
        let found = rows
            .find(|entry| !entry.pod.spec.host_network && ips(entry).any(|ip| ip == address.ip()));
        // Without a sandbox that is ready its old address may be another's.
        let end = match found {
            Some(entry) => pod_end(view, &entry).await.ok(),
            None => None,
        };
        return Ok((address, end));
    };
    let (namespace, name) = pod
        .split_once('/')
        .ok_or_else(|| invalid("write pod/NAMESPACE/NAME"))?;
    let wanted = PodRef {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    };
    let entry = of_container(&view.pods, &wanted, None);
    let entry = entry.map_err(|_| invalid("there is no such pod on this node"))?;
    let family = probe.family();
    let fits = |ip: &IpAddr| family.is_none_or(|family| family == Family::of(*ip));
    let address = ips(&entry).find(fits);
    let address = address.ok_or_else(|| invalid("it has no such address"))?;
    let end = pod_end(view, &entry).await;
    let end = end.map_err(|_| invalid("it has no network at present"))?;
    Ok((SocketAddr::new(address, 0), Some(end)))
}

async fn pod_end(view: &ViewParts, entry: &PodEntry) -> Result<PathEnd, NetRefusal> {
    let parts = &view.sessions;
    let sandbox = ready_sandbox(parts, entry).await.map_err(refused)?;
    let namespace = namespace_of(parts, entry, &sandbox).await?;
    Ok(PathEnd::new(entry, namespace))
}

/// The addresses of a pod by its status.
fn ips(entry: &PodEntry) -> impl Iterator<Item = IpAddr> {
    let texts = entry.status.pod_ips.iter();
    texts.filter_map(|text| text.parse().ok())
}

/// The interfaces between a pod and a target.
async fn path_inputs(
    entry: &PodEntry,
    namespace: Option<Arc<OwnedFd>>,
    target: SocketAddr,
    to: Option<PathEnd>,
) -> Result<PathInputs, NetRefusal> {
    let source = ips(entry).find(|own| own.is_ipv4() == target.is_ipv4());
    let from = PathEnd::new(entry, namespace);
    let opened = spawn_blocking(move || points::path(&from, source, target, to.as_ref())).await;
    let opened = opened.map_err(|error| NetRefusal::Internal(error.to_string()))?;
    opened.map_err(|error| NetRefusal::Internal(ErrorChain(&error).to_string()))
}

type Line = Result<String, NetRefusal>;
type Ended = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The lines of a probe. Dropping it stops the probe.
struct Reports {
    first: Option<String>,
    lines: mpsc::Receiver<Line>,
    /// The handle that stops the probe, and the future of its end.
    running: Option<(StopHandle, Ended)>,
}

impl Reports {
    async fn next(mut self) -> Option<(io::Result<Bytes>, Self)> {
        let line = match self.first.take() {
            Some(line) => Ok(line),
            None => self.line().await?,
        };
        let line = line.map(Bytes::from);
        Some((
            line.map_err(|refusal| io::Error::other(refusal.to_string())),
            self,
        ))
    }

    async fn line(&mut self) -> Option<Line> {
        if let Some((_, ended)) = &mut self.running {
            // Cancel safe: a line that is not received stays in the channel.
            tokio::select! {
                biased;
                line = self.lines.recv() => return line,
                () = ended => {}
            }
            // The probe reports its results.
            self.running = None;
        }
        self.lines.recv().await
    }
}

/// Starts the thread of a probe.
fn start(
    probe: ProbeRequest,
    addresses: Vec<SocketAddr>,
    inputs: ProbeInputs,
    place: Option<Arc<OwnedFd>>,
    permit: OwnedSemaphorePermit,
) -> Result<(StopHandle, mpsc::Receiver<Line>), NetRefusal> {
    let failed = |error: io::Error| NetRefusal::Internal(format!("cannot start a probe: {error}"));
    let (stop, signal) = stop_pair().map_err(failed)?;
    let (sender, lines) = mpsc::channel(LINES);
    let run = move || {
        let _permit = permit;
        let open: Box<dyn OpenSocket> = match place {
            Some(netns) => Box::new(NamespaceOf(netns)),
            None => Box::new(OwnNamespace),
        };
        let mut line = |line| match sender.blocking_send(Ok(line)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        };
        if let Err(error) = probe.run(&addresses, inputs, &*open, signal.as_fd(), &mut line) {
            let text = ErrorChain(&error).to_string();
            // The client may be gone.
            let _ = sender.blocking_send(Err(NetRefusal::Internal(text)));
        }
    };
    let builder = thread::Builder::new().name("netprobe".to_owned());
    builder.spawn(run).map_err(failed)?;
    Ok((stop, lines))
}

/// Opens the network namespace of a sandbox: the runtime's verbose status has its path, or a process
/// in it.
async fn network_namespace(parts: &SessionParts, sandbox: &str) -> Result<OwnedFd, NetRefusal> {
    let path = reported_namespace(parts, sandbox).await?;
    let opened = {
        let path = path.clone();
        spawn_blocking(move || netns::open(&path)).await
    };
    let opened = opened.map_err(|error| NetRefusal::Internal(error.to_string()))?;
    let opened = opened.map_err(|error| NetRefusal::Internal(ErrorChain(&error).to_string()))?;
    // The process may have ended before its namespace was opened, and its number may be another's by
    // then.
    match reported_namespace(parts, sandbox).await? == path {
        true => Ok(opened),
        false => Err(NetRefusal::NotReady),
    }
}

async fn reported_namespace(parts: &SessionParts, sandbox: &str) -> Result<PathBuf, NetRefusal> {
    let request = v1::PodSandboxStatusRequest {
        pod_sandbox_id: sandbox.to_owned(),
        verbose: true,
    };
    let reported = parts.runtime.pod_sandbox_status(request).await;
    let reported = reported.map_err(|error| match error.is_not_found() {
        true => NetRefusal::NotReady,
        false => NetRefusal::Internal(error.to_string()),
    })?;
    let ready: i32 = v1::PodSandboxState::SandboxReady.into();
    if reported.status.is_none_or(|status| status.state != ready) {
        return Err(NetRefusal::NotReady);
    }
    let info = reported.info.get("info").map(String::as_str);
    let info: Value = serde_json::from_str(info.unwrap_or_default()).unwrap_or_default();
    namespace_path(&info).ok_or_else(|| {
        NetRefusal::Internal(
            "the container runtime reports neither the network namespace of the pod nor a process in it"
                .to_owned(),
        )
    })
}

/// The path of the network namespace, as the embedded runtime, containerd and CRI-O report it.
fn namespace_path(info: &Value) -> Option<PathBuf> {
    let absolute = |path: &Value| {
        let path = Path::new(path.as_str()?);
        path.is_absolute().then(|| path.to_owned())
    };
    let of_spec = || {
        let namespaces = info["runtimeSpec"]["linux"]["namespaces"].as_array()?;
        let network = namespaces.iter().find(|one| one["type"] == "network")?;
        absolute(&network["path"])
    };
    let of_process = || {
        let pid = info["pid"].as_u64().filter(|pid| *pid > 0)?;
        Some(PathBuf::from(format!("/proc/{pid}/ns/net")))
    };
    absolute(&info["networkNamespace"])
        .or_else(of_spec)
        .or_else(of_process)
}

/// Ends when the pod is gone or done, or when its sandbox is not ready any more: the runtime is asked
/// when something of the pod has changed.
async fn until_gone(
    pods: Arc<PodBoard>,
    entry: Arc<PodEntry>,
    parts: SessionParts,
    sandbox: String,
) {
    let mut versions = pods.versions();
    let mut seen = entry;
    loop {
        let Some(now) = pods.get(&seen.pod.uid).filter(|now| !now.finished) else {
            return;
        };
        if !Arc::ptr_eq(&now, &seen) && !is_ready(&parts, &sandbox).await {
            return;
        }
        seen = now;
        if versions.changed().await.is_err() {
            return;
        }
    }
}

/// Whether a sandbox is ready; true if the runtime reports neither that nor that it is gone.
async fn is_ready(parts: &SessionParts, sandbox: &str) -> bool {
    let request = v1::PodSandboxStatusRequest {
        pod_sandbox_id: sandbox.to_owned(),
        verbose: false,
    };
    let ready: i32 = v1::PodSandboxState::SandboxReady.into();
    match parts.runtime.pod_sandbox_status(request).await {
        Ok(reported) => reported.status.is_some_and(|status| status.state == ready),
        Err(error) => !error.is_not_found(),
    }
}

/// The addresses of the targets, from the resolver of the node.
async fn resolve(probe: &ProbeRequest) -> Result<Vec<SocketAddr>, NetRefusal> {
    let mut addresses = Vec::new();
    let deadline = Instant::now() + RESOLVE;
    for name in probe.targets() {
        let found = look_up(name, 0, deadline).await;
        let invalid = |why: String| NetRefusal::Invalid(format!("cannot resolve {name:?}: {why}"));
        let mut found = found.map_err(|error| invalid(error.to_string()))?;
        let wanted = probe.family();
        let fits =
            |address: &SocketAddr| wanted.is_none_or(|family| family == Family::of(address.ip()));
        let address = found.find(fits);
        addresses.push(address.ok_or_else(|| {
            let family = match wanted {
                Some(Family::V6) => "IPv6",
                _ => "IPv4",
            };
            invalid(format!("it has no {family} address"))
        })?);
    }
    Ok(addresses)
}

/// The addresses of a host, from the resolver of the node.
async fn look_up(
    host: &str,
    port: u16,
    deadline: Instant,
) -> io::Result<impl Iterator<Item = SocketAddr>> {
    let found = timeout_at(deadline, tokio::net::lookup_host((host, port))).await;
    found.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

fn refused(error: SessionError) -> NetRefusal {
    match error {
        SessionError::NoPod => NetRefusal::NoPod,
        SessionError::NoSandbox | SessionError::NotRunning | SessionError::OtherUid => {
            NetRefusal::NotReady
        }
        error => NetRefusal::Internal(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_network_namespace_is_found_in_the_status_of_each_runtime() {
        let spec = |path: Value| {
            json!({ "pid": 7, "runtimeSpec": { "linux": { "namespaces": [
                { "type": "pid" }, { "type": "network", "path": path },
            ]}}})
        };
        for (info, path) in [
            (
                json!({ "pid": 7, "networkNamespace": "/run/n" }),
                Some("/run/n"),
            ),
            (
                json!({ "pid": 7, "networkNamespace": null }),
                Some("/proc/7/ns/net"),
            ),
            (spec(json!("/var/run/netns/a")), Some("/var/run/netns/a")),
            (spec(json!("")), Some("/proc/7/ns/net")),
            (spec(json!("../a")), Some("/proc/7/ns/net")),
            (json!({ "pid": 0 }), None),
            (json!({ "pid": -1 }), None),
            (Value::Null, None),
        ] {
            assert_eq!(
                namespace_path(&info).as_deref(),
                path.map(Path::new),
                "{info}"
            );
        }
    }
}
