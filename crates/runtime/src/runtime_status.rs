//! `Version`, `Status` and `RuntimeConfig`: information about the runtime itself.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use rubelet_cgroup_plan::CgroupDriver;
use rubelet_cni::Cidr;
use rubelet_cri::v1;
use serde_json::json;

use crate::{
    apparmor,
    container::Container,
    engine::Engine,
    error::{Result, RuntimeError},
    handler,
    sandbox::Sandbox,
};

/// The version of the CRI.
const API: &str = "v1";

/// The reply to `Version`.
pub(crate) fn version(engine: &Engine) -> v1::VersionResponse {
    v1::VersionResponse {
        // Every runtime returns this value; the kubelet checks only that it is not empty.
        version: "0.1.0".to_owned(),
        runtime_name: "rubelet".to_owned(),
        runtime_version: engine.settings.version.clone(),
        runtime_api_version: API.to_owned(),
    }
}

/// The reply to `RuntimeConfig`.
pub(crate) fn config(engine: &Engine) -> v1::RuntimeConfigResponse {
    let driver = match engine.facts.driver {
        CgroupDriver::Systemd => v1::CgroupDriver::Systemd,
        CgroupDriver::Cgroupfs => v1::CgroupDriver::Cgroupfs,
    };
    v1::RuntimeConfigResponse {
        linux: Some(v1::LinuxRuntimeConfiguration {
            cgroup_driver: driver.into(),
        }),
    }
}

/// The reply to `Status`.
pub(crate) async fn status(engine: &Engine, verbose: bool) -> v1::StatusResponse {
    let condition = |kind: &str, reason: &str, message: Option<String>| v1::RuntimeCondition {
        r#type: kind.to_owned(),
        status: message.is_none(),
        reason: message
            .as_ref()
            .map_or_else(String::new, |_| reason.to_owned()),
        message: message.unwrap_or_default(),
    };
    let network = engine
        .network
        .status()
        .await
        .err()
        .map(|error| error.to_string());
    let mut info = BTreeMap::new();
    if verbose {
        let text = json!({
            "root": engine.layout.root(),
            "run": engine.layout.run(),
            "bootId": engine.boot_id,
            "cdiSpecDirs": engine.settings.cdi_spec_dirs,
            "kernel": format!("{}.{}", engine.facts.kernel.0, engine.facts.kernel.1),
            "networkWarnings": engine.network.warnings().await,
            "appArmorWarning": app_armor(engine).await,
            "sandboxes": engine.table.sandboxes().len(),
            "containers": engine.table.containers().len(),
        });
        info.insert("config".to_owned(), text.to_string());
    }
    v1::StatusResponse {
        status: Some(v1::RuntimeStatus {
            conditions: vec![
                condition("RuntimeReady", "", None),
                condition("NetworkReady", "NetworkPluginNotReady", network),
            ],
        }),
        info,
        runtime_handlers: handlers(engine),
        features: Some(v1::RuntimeFeatures {
            supplemental_groups_policy: true,
            user_namespaces_host_network: true,
            mount_options: true,
        }),
    }
}

/// The reason why containers run without the runtime's AppArmor profile although AppArmor is
/// enabled.
async fn app_armor(engine: &Engine) -> Option<String> {
    if !engine.facts.apparmor {
        return None;
    }
    let look = || Ok(apparmor::obstacle(Path::new("/")).map(|why| why.to_string()));
    engine.blocking(look).await.ok().flatten()
}

/// The empty name is the default handler, which is also listed under its own name. An external
/// program does not report its features: only those that all its versions have are listed.
fn handlers(engine: &Engine) -> Vec<v1::RuntimeHandler> {
    let facts = &engine.facts;
    let own = v1::RuntimeHandlerFeatures {
        recursive_read_only_mounts: facts.recursive_read_only,
        user_namespaces: facts.user_namespaces && facts.idmapped_mounts,
    };
    let names = handler::names(&engine.settings);
    [String::new()]
        .into_iter()
        .chain(names)
        .map(|name| v1::RuntimeHandler {
            features: Some(match &*name {
                "" | handler::EMBEDDED => own,
                _ => v1::RuntimeHandlerFeatures::default(),
            }),
            name,
        })
        .collect()
}

/// `UpdateRuntimeConfig`: the ranges of the pods' addresses.
pub(crate) async fn update(
    engine: &Arc<Engine>,
    request: v1::UpdateRuntimeConfigRequest,
) -> Result<()> {
    let config = request.runtime_config.unwrap_or_default();
    let text = config.network_config.unwrap_or_default().pod_cidr;
    let ranges: Result<Vec<Cidr>, _> = text
        .split(',')
        .map(str::trim)
        .filter(|range| !range.is_empty())
        .map(str::parse)
        .collect();
    let ranges = ranges.map_err(|error| {
        RuntimeError::invalid(format!(
            "runtime_config.network_config.pod_cidr {text:?}: {error}"
        ))
    })?;
    if ranges.is_empty() {
        return Ok(());
    }
    let set = engine.network.set_pod_cidrs(&ranges).await;
    set.map_err(|error| {
        RuntimeError::failed(format!("cannot give pods addresses of {text}: {error}"))
    })
}

/// Verbose information for `crictl inspectp`.
pub(crate) fn sandbox(engine: &Engine, sandbox: &Sandbox) -> BTreeMap<String, String> {
    let record = sandbox.record();
    let dir = engine.layout.sandbox(&sandbox.id);
    let info = json!({
        "pid": sandbox.live_link().map_or(0, |link| link.pid()),
        "shimCgroup": record.shim_cgroup,
        "networkNamespace": sandbox.has_network().then(|| dir.netns()),
        "runtimeHandler": record.runtime_handler,
        "bootId": record.boot_id,
    });
    [("info".to_owned(), info.to_string())].into()
}

/// Verbose information for `crictl inspect`.
pub(crate) async fn container(engine: &Engine, container: &Container) -> BTreeMap<String, String> {
    let record = container.record();
    let dir = engine
        .layout
        .sandbox(&container.sandbox.id)
        .bundle(&container.id);
    let file = dir.join("config.json");
    let spec = engine
        .blocking(move || Ok(std::fs::read(&file).ok()))
        .await
        .ok()
        .flatten()
        .and_then(|text| serde_json::from_slice::<serde_json::Value>(&text).ok());
    let info = json!({
        "sandboxID": record.sandbox_id,
        "pid": record.pid,
        "cgroup": record.cgroup,
        "bundle": dir,
        "runtimeSpec": spec,
    });
    [("info".to_owned(), info.to_string())].into()
}
