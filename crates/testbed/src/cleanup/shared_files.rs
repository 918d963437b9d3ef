//! The few files that containerd, CNI and agents store at fixed paths outside an instance's
//! directory.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::absent;

/// libcni's directory of results of network attachments.
const CNI_RESULTS: &str = "/var/lib/cni/results";
/// The kubelet's directory of links to container logs, for log collectors.
const CONTAINER_LOGS: &str = "/var/log/containers";
/// Directories that all runtimes and kubelets of a host share, the deepest first.
const SHARED: [&str; 7] = [
    CONTAINER_LOGS,
    "/run/containerd/s",
    "/run/containerd/fifo",
    "/run/containerd",
    "/var/lib/cni/results",
    "/var/lib/cni/cache",
    "/var/lib/cni",
];

/// The sockets of the shims of the instance in `dir`; they are below /run.
pub(super) fn shim_sockets(dir: &Path) -> Vec<PathBuf> {
    let tasks = dir.join("state/io.containerd.runtime.v2.task");
    let mut sockets = Vec::new();
    for namespace in children(&tasks) {
        for bundle in children(&namespace) {
            for file in ["bootstrap.json", "address"] {
                let Ok(text) = std::fs::read_to_string(bundle.join(file)) else {
                    continue;
                };
                sockets.extend(socket_in(&text));
            }
        }
    }
    sockets
}

/// Removes the sockets and all other files of the instance in `dir`.
pub(super) fn remove(sockets: &[PathBuf], dir: &Path) -> Result<()> {
    for path in sockets.iter().chain(&of(dir)) {
        absent::is_fine(std::fs::remove_file(path))?;
    }
    Ok(())
}

/// The current files of the instance in `dir`: CNI results of its network attachments, identified
/// by the network namespace below that directory, and links to its log files.
pub(super) fn of(dir: &Path) -> Vec<PathBuf> {
    let namespace = format!("\"{}/", dir.display());
    let is_result =
        |path: &PathBuf| std::fs::read_to_string(path).is_ok_and(|text| text.contains(&namespace));
    let is_link =
        |path: &PathBuf| std::fs::read_link(path).is_ok_and(|target| target.starts_with(dir));
    let results = children(Path::new(CNI_RESULTS))
        .into_iter()
        .filter(is_result);
    results
        .chain(
            children(Path::new(CONTAINER_LOGS))
                .into_iter()
                .filter(is_link),
        )
        .collect()
}

/// The shared directories that exist.
pub(crate) fn existing_directories() -> Vec<String> {
    SHARED
        .into_iter()
        .filter(|dir| Path::new(dir).is_dir())
        .map(str::to_owned)
        .collect()
}

/// Removes the shared directories that are empty and not in `keep`.
pub(crate) fn remove_empty_directories(keep: &[String]) {
    for directory in SHARED
        .iter()
        .filter(|dir| !keep.iter().any(|kept| kept == *dir))
    {
        // A missing or non-empty directory is as it should be.
        let _ = std::fs::remove_dir(directory);
    }
}

fn children(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect()
}

/// The socket's path in a shim's bootstrap record: JSON of version 2, or only the address before.
fn socket_in(text: &str) -> Option<PathBuf> {
    let address = match serde_json::from_str::<serde_json::Value>(text) {
        Ok(record) => record.get("address")?.as_str()?.to_owned(),
        Err(_) => text.trim().to_owned(),
    };
    address.strip_prefix("unix://").map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shim_socket_is_found_in_both_record_formats() {
        for text in [
            r#"{"version":3,"address":"unix:///run/containerd/s/69","protocol":"ttrpc"}"#,
            "unix:///run/containerd/s/69",
        ] {
            assert_eq!(
                socket_in(text),
                Some(PathBuf::from("/run/containerd/s/69")),
                "{text}"
            );
        }
        assert_eq!(socket_in("{}"), None);
    }
}
