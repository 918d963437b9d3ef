//! libcni's result cache, which other programs read.

use std::{
    fs,
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::attachment::CniAttachment;

use super::{capabilities, json_file};

/// The interface's name in every pod.
pub(super) const INTERFACE: &str = "eth0";

fn file(dir: &Path, network: &str, sandbox: &str) -> PathBuf {
    dir.join("results").join(name(network, sandbox))
}

fn name(network: &str, sandbox: &str) -> String {
    format!("{network}-{sandbox}-{INTERFACE}")
}

/// Writes a pod's result.
pub(super) fn write(
    dir: &Path,
    network: &str,
    sandbox: &str,
    netns: &str,
    cni: &CniAttachment,
) -> io::Result<()> {
    let config = serde_json::to_vec(&cni.config).unwrap_or_default();
    let value = json!({
        "kind": "cniCacheV1",
        "containerId": sandbox,
        "config": STANDARD.encode(config),
        "ifName": INTERFACE,
        "networkName": network,
        "netns": netns,
        "cniArgs": cni.args,
        "capabilityArgs": cni.capabilities,
        "result": cni.result,
    });
    let path = file(dir, network, sandbox);
    // Same modes as libcni's: a configuration may have secrets.
    let mut directory = fs::DirBuilder::new();
    directory.recursive(true).mode(0o700);
    directory.create(dir.join("results"))?;
    // Written to a temporary file and renamed. libcni writes in place, so that a reader may see a
    // partial file.
    let beside = unfinished(dir, network, sandbox);
    remove_if_there(&beside)?;
    let mut options = fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&beside)?;
    file.write_all(value.to_string().as_bytes())?;
    fs::rename(&beside, &path)
}

/// Removes the result of a pod.
pub(super) fn remove(dir: &Path, network: &str, sandbox: &str) -> io::Result<()> {
    for path in [
        unfinished(dir, network, sandbox),
        file(dir, network, sandbox),
    ] {
        remove_if_there(&path)?;
    }
    Ok(())
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The temporary file of a result.
fn unfinished(dir: &Path, network: &str, sandbox: &str) -> PathBuf {
    dir.join("results")
        .join(format!(".{}.new", name(network, sandbox)))
}

/// The attachments to a network in the cache, of all runtimes.
pub(super) fn attachments(dir: &Path, network: &str) -> Vec<(String, String)> {
    let entries = fs::read_dir(dir.join("results")).into_iter().flatten();
    entries
        .filter_map(|entry| {
            let text = json_file::read(&entry.ok()?.path()).ok()?;
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
    cni: &CniAttachment,
) -> Vec<(&'static str, std::ffi::OsString)> {
    vec![
        ("CNI_CONTAINERID", sandbox.into()),
        ("CNI_NETNS", netns.into()),
        ("CNI_IFNAME", INTERFACE.into()),
        ("CNI_ARGS", capabilities::joined(&cni.args).into()),
    ]
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn results_are_for_root_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let cni = CniAttachment {
            config: json!({}),
            args: Vec::new(),
            capabilities: serde_json::Map::new(),
            result: None,
        };
        let elsewhere = dir.path().join("elsewhere");
        fs::write(&elsewhere, "untouched").unwrap();
        fs::create_dir(dir.path().join("results")).unwrap();
        let beside = unfinished(dir.path(), "net", "s1");
        std::os::unix::fs::symlink(&elsewhere, beside).unwrap();
        write(dir.path(), "net", "s1", "", &cni).unwrap();
        assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "untouched");
        let mode = fs::metadata(file(dir.path(), "net", "s1")).unwrap();
        assert_eq!(mode.permissions().mode() & 0o777, 0o600);
        let found = attachments(dir.path(), "net");
        assert_eq!(found, [("s1".to_owned(), INTERFACE.to_owned())]);
    }
}
