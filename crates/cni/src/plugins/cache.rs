//! Results as libcni keeps them, where other programs look for them.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::attachment::Plugged;

use super::capabilities;

/// The interface's name in every pod.
pub(super) const INTERFACE: &str = "eth0";

fn file(dir: &Path, network: &str, sandbox: &str) -> PathBuf {
    dir.join("results").join(name(network, sandbox))
}

fn name(network: &str, sandbox: &str) -> String {
    format!("{network}-{sandbox}-{INTERFACE}")
}

/// Writes the result of a pod.
pub(super) fn write(
    dir: &Path,
    network: &str,
    sandbox: &str,
    netns: &str,
    plugged: &Plugged,
) -> io::Result<()> {
    let config = serde_json::to_vec(&plugged.config).unwrap_or_default();
    let value = json!({
        "kind": "cniCacheV1",
        "containerId": sandbox,
        "config": STANDARD.encode(config),
        "ifName": INTERFACE,
        "networkName": network,
        "netns": netns,
        "cniArgs": plugged.args,
        "capabilityArgs": plugged.capabilities,
        "result": plugged.result,
    });
    let path = file(dir, network, sandbox);
    fs::create_dir_all(dir.join("results"))?;
    // Libcni writes in place; a reader then may find half a file.
    let beside = unfinished(dir, network, sandbox);
    fs::write(&beside, value.to_string())?;
    fs::rename(&beside, &path)
}

/// Removes the result of a pod.
pub(super) fn remove(dir: &Path, network: &str, sandbox: &str) -> io::Result<()> {
    for path in [
        unfinished(dir, network, sandbox),
        file(dir, network, sandbox),
    ] {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Where a result is while it is written.
fn unfinished(dir: &Path, network: &str, sandbox: &str) -> PathBuf {
    dir.join("results")
        .join(format!(".{}.new", name(network, sandbox)))
}

/// The attachments to a network that libcni's form tells of, whoever made them.
pub(super) fn attachments(dir: &Path, network: &str) -> Vec<(String, String)> {
    let entries = fs::read_dir(dir.join("results")).into_iter().flatten();
    entries
        .filter_map(|entry| {
            let text = fs::read(entry.ok()?.path()).ok()?;
            let value: Value = serde_json::from_slice(&text).ok()?;
            if value["networkName"].as_str() != Some(network) {
                return None;
            }
            let text = |key: &str| Some(value[key].as_str()?.to_owned());
            Some((text("containerId")?, text("ifName")?))
        })
        .collect()
}

/// The variables of a pod.
pub(super) fn environment(
    sandbox: &str,
    netns: &Path,
    plugged: &Plugged,
) -> Vec<(&'static str, std::ffi::OsString)> {
    vec![
        ("CNI_CONTAINERID", sandbox.into()),
        ("CNI_NETNS", netns.into()),
        ("CNI_IFNAME", INTERFACE.into()),
        ("CNI_ARGS", capabilities::joined(&plugged.args).into()),
    ]
}
