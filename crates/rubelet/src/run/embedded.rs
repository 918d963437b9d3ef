//! The container runtime inside: its settings, its start, and the socket for crictl and others.

mod in_process;
pub(crate) mod serve;

use std::{future::Future, path::Path, sync::Arc, time::Duration};

use anyhow::{Context as _, anyhow};
use rubelet_base::cgroup::CgroupPath;
use rubelet_cni::Cidr;
use rubelet_config::EmbeddedRuntime as Options;
use rubelet_cri_grpc::serve_loading;
use rubelet_runtime::{CgroupDriver, EmbeddedRuntime, RuntimeSettings};
use rubelet_server::{UnixSocket, bind_unix};
use tokio::{net::UnixListener, sync::oneshot, time::sleep};

pub(crate) use self::in_process::InProcess;

/// A client that does not read its answers, or never closes, must not hold up the end.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// What stands in for the endpoint in the log and in messages.
pub(crate) const ENDPOINT: &str = "embedded";

/// The runtime's settings from the configuration.
pub(crate) fn settings(options: &Options, cgroup_driver: &str) -> anyhow::Result<RuntimeSettings> {
    let mut settings = RuntimeSettings::new(&options.root_dir, &options.run_dir);
    let driver = match cgroup_driver {
        "systemd" => CgroupDriver::Systemd,
        _ => CgroupDriver::Cgroupfs,
    };
    CgroupPath::parse(&options.cgroup)
        .and_then(|shims| settings.set_cgroups(driver, &shims))
        .map_err(|error| anyhow!("rubelet.runtime.cgroup: {error}"))?;
    let network = &mut settings.network;
    network.cni_conf_dir = options.cni_conf_dir.clone().into();
    network.cni_bin_dirs = options.cni_bin_dirs.iter().map(Into::into).collect();
    network.bridge_name.clone_from(&options.bridge);
    network.subnets = subnets("rubelet.runtime.bridgeSubnets", &options.bridge_subnets)?;
    network.masquerade_exempt = subnets(
        "rubelet.runtime.masqueradeExempt",
        &options.masquerade_exempt,
    )?;
    settings.cdi_spec_dirs = options.cdi_spec_dirs.iter().map(Into::into).collect();
    let images = &mut settings.images;
    images
        .insecure_registries
        .clone_from(&options.insecure_registries);
    images.authorities = Some(&options.registry_authorities)
        .filter(|path| !path.is_empty())
        .map(Into::into);
    images.hosts_dirs = options.registry_hosts_dirs.iter().map(Into::into).collect();
    images.limits.progress = options.image_pull_progress_timeout;
    Ok(settings)
}

fn subnets(field: &str, texts: &[String]) -> anyhow::Result<Vec<Cidr>> {
    let parse = |text: &String| {
        let parsed = text.parse();
        parsed.map_err(|error| anyhow!("{field}: {text:?} is no subnet: {error}"))
    };
    texts.iter().map(parse).collect()
}

/// Puts the pods of a node without a cluster into the node's pod CIDR, if it has one.
pub(crate) fn use_pod_cidr(settings: &mut RuntimeSettings, pod_cidr: &str) -> anyhow::Result<()> {
    let parts = pod_cidr.split(',').map(|part| part.trim().to_owned());
    let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
    let subnets = subnets("podCIDR", &parts)?;
    if !subnets.is_empty() {
        settings.network.subnets = subnets;
    }
    Ok(())
}

/// Starts the runtime: takes its folder, finds what runs already, clears leftovers away.
pub(crate) async fn start(settings: RuntimeSettings) -> anyhow::Result<Arc<EmbeddedRuntime>> {
    let root = settings.root.clone();
    EmbeddedRuntime::start(settings).await.with_context(|| {
        let root = Path::new(&root).display();
        format!("cannot start the embedded runtime in {root}")
    })
}

/// Listens for crictl and others; for root only, as whoever talks to a runtime can become root.
pub(crate) async fn bind(path: &str) -> anyhow::Result<UnixListener> {
    let socket = UnixSocket {
        mode: 0o600,
        ..UnixSocket::new(path)
    };
    bind_unix(&socket)
        .await
        .context("the runtime's socket can't be opened")
}

/// Serves the runtime to whoever connects, until `shutdown` resolves. Then calls under way get
/// [`LAST_ANSWERS`]; what they do in the runtime goes on.
pub(crate) async fn serve_cri(
    listener: UnixListener,
    runtime: Arc<EmbeddedRuntime>,
    shutdown: impl Future<Output = ()>,
) {
    let services = Arc::clone(&runtime);
    let loader = Some(Arc::clone(&runtime) as _);
    let (stop, stopped) = oneshot::channel();
    let served = serve_loading(listener, services, runtime, loader, async {
        // An error means that nobody is left to stop it.
        let _ = stopped.await;
    });
    let ended = async {
        shutdown.await;
        // The receiver is gone only when the server has ended.
        let _ = stop.send(());
        sleep(LAST_ANSWERS).await;
    };
    tokio::select! {
        () = served => {}
        () = ended => {}
    }
}
