//! The embedded container runtime: its settings, its start, and the socket for crictl and others.

mod in_process;
pub(crate) mod serve;

use std::{future::Future, path::Path, sync::Arc, time::Duration};

use anyhow::{Context as _, anyhow};
use rubelet_cgroup_plan::{CgroupDriver, CgroupPath};
use rubelet_cni::{Cidr, NetworkChoice};
use rubelet_config::{EmbeddedRuntime as Options, Resolved};
use rubelet_cri_grpc::serve_loading;
use rubelet_runtime::{EmbeddedRuntime, RuntimeSettings};
use rubelet_server::{UnixSocket, bind_unix};
use tokio::{net::UnixListener, sync::oneshot, time::sleep};

pub(crate) use self::in_process::InProcess;
use super::log_rotation::bytes;

/// A client that does not read its responses, or never closes, must not delay the shutdown.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// Minimum limit of a container's log: two files, and one read of a container's output may become
/// almost a MiB of entries.
const LEAST_LOG: u64 = 2 << 20;

/// Minimum of the default limit: the result of the kubelet's defaults. With small files a container
/// that writes much in a short time would lose what a later rotation would have kept.
const LEAST_DEFAULT_LOG: u64 = 50 << 20;

/// Replaces the endpoint in the log and in messages.
pub(crate) const ENDPOINT: &str = "embedded";

/// The value of `cgroupDriver`, which is valid.
pub(super) fn cgroup_driver(value: &str) -> CgroupDriver {
    match value {
        "systemd" => CgroupDriver::Systemd,
        _ => CgroupDriver::Cgroupfs,
    }
}

/// The runtime's settings from the configuration.
pub(crate) fn settings(options: &Options, cgroup_driver: &str) -> anyhow::Result<RuntimeSettings> {
    let mut settings = RuntimeSettings::new(&options.root_dir, &options.run_dir);
    let driver = self::cgroup_driver(cgroup_driver);
    CgroupPath::parse(&options.cgroup)
        .and_then(|shims| settings.set_cgroups(driver, &shims))
        .map_err(|error| anyhow!("rubelet.runtime.cgroup: {error}"))?;
    let network = &mut settings.network;
    network.choice = match &*options.network {
        "bridge" => NetworkChoice::Bridge,
        "cni" => NetworkChoice::Cni,
        _ => NetworkChoice::Any,
    };
    network.cni_conf_dir = options.cni_conf_dir.clone().into();
    network.cni_bin_dirs = options.cni_bin_dirs.iter().map(Into::into).collect();
    network.bridge_name.clone_from(&options.bridge);
    network.isolate_pods = options.isolate_pods;
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

/// Limits the logs of containers as configured.
///
/// # Errors
/// The limit is lower than the maximum output of one read.
pub(crate) fn bound_logs(
    settings: &mut RuntimeSettings,
    resolved: &Resolved,
) -> anyhow::Result<()> {
    let config = &resolved.config;
    settings.max_log_bytes = log_bound(
        &resolved.rubelet.runtime.container_log_max_total,
        &config.container_log_max_size,
        config.container_log_max_files,
    )?;
    Ok(())
}

/// The limit in bytes; `total` is given explicitly, the others are for rotation.
fn log_bound(total: &str, size: &str, files: i32) -> anyhow::Result<u64> {
    const FIELD: &str = "rubelet.runtime.containerLogMaxTotal";
    if total.is_empty() {
        // No files and a size below 0 mean no rotation; a limit is then needed even more.
        let files = u64::try_from(files).unwrap_or_default();
        let rotated = bytes("containerLogMaxSize", size)?.saturating_mul(files);
        return Ok(rotated.max(LEAST_DEFAULT_LOG));
    }
    match bytes(FIELD, total)? {
        1..LEAST_LOG => Err(anyhow!("{FIELD}: must be 0 or at least 2Mi, is {total:?}")),
        bytes => Ok(bytes),
    }
}

fn subnets(field: &str, texts: &[String]) -> anyhow::Result<Vec<Cidr>> {
    let parse = |text: &String| {
        let parsed = text.parse();
        parsed.map_err(|error| anyhow!("{field}: {text:?} is not a subnet: {error}"))
    };
    texts.iter().map(parse).collect()
}

/// A cluster brings its own network, often by a pod. Until its configuration is written, pods on
/// the bridge would stay there, unreachable for others: the node is not ready, as with other
/// runtimes.
pub(crate) fn wait_for_network(settings: &mut RuntimeSettings) {
    if settings.network.choice == NetworkChoice::Any {
        settings.network.choice = NetworkChoice::Cni;
    }
}

/// Uses the node's pod CIDR for the pods of a node without a cluster, if it has one.
pub(crate) fn use_pod_cidr(settings: &mut RuntimeSettings, pod_cidr: &str) -> anyhow::Result<()> {
    let parts = pod_cidr.split(',').map(|part| part.trim().to_owned());
    let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
    let subnets = subnets("podCIDR", &parts)?;
    if !subnets.is_empty() {
        settings.network.subnets = subnets;
    }
    Ok(())
}

/// Starts the runtime: locks its directory, recovers running containers, removes leftovers.
pub(crate) async fn start(settings: RuntimeSettings) -> anyhow::Result<Arc<EmbeddedRuntime>> {
    let root = settings.root.clone();
    EmbeddedRuntime::start(settings).await.with_context(|| {
        let root = Path::new(&root).display();
        format!("cannot start the embedded runtime in {root}")
    })
}

/// Listens for crictl and others; only root can connect, as access to a runtime is equivalent to
/// root.
pub(crate) async fn bind(path: &str) -> anyhow::Result<UnixListener> {
    let socket = UnixSocket {
        mode: 0o600,
        ..UnixSocket::new(path)
    };
    bind_unix(&socket)
        .await
        .context("cannot open the socket of the embedded runtime")
}

/// Serves the runtime until `shutdown` resolves. Then current calls get [`LAST_ANSWERS`]; their
/// operations continue in the runtime.
pub(crate) async fn serve_cri(
    listener: UnixListener,
    runtime: Arc<EmbeddedRuntime>,
    shutdown: impl Future<Output = ()>,
) {
    let services = Arc::clone(&runtime);
    let loader = Some(Arc::clone(&runtime) as _);
    let (stop, stopped) = oneshot::channel();
    let served = serve_loading(listener, services, runtime, loader, async {
        // An error means that the sender is gone, and nothing else can stop it.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_bounded_unless_that_is_switched_off() {
        const MIB: u64 = 1 << 20;
        for (total, size, files, expected) in [
            ("", "10Mi", 5, 50 * MIB),
            ("", "1Ki", 2, 50 * MIB),
            ("", "-1", 5, 50 * MIB),
            ("", "100Mi", 7, 700 * MIB),
            ("2Mi", "100Mi", 7, 2 * MIB),
            ("0", "10Mi", 5, 0),
        ] {
            let bound = log_bound(total, size, files).unwrap();
            assert_eq!(bound, expected, "{total:?} {size} {files}");
        }
        let error = log_bound("1Mi", "10Mi", 5).unwrap_err().to_string();
        assert!(error.contains("at least 2Mi"), "{error}");
    }
}
