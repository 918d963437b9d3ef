//! The bridge of an instance and the interfaces on it.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::command::stdout_of;
use crate::packages::IP;
use crate::scratch::{BRIDGE_PREFIX, Scratch};

const INTERFACES: &str = "/sys/class/net";

/// The instance's current network interfaces: its bridge and the ports.
#[must_use]
pub fn links_of(scratch: &Scratch) -> Vec<String> {
    links_of_bridge(&scratch.bridge())
}

/// Names of all bridges of instances on this machine, of live and dead ones.
pub(crate) fn bridges() -> Vec<String> {
    bridges_in(INTERFACES)
}

/// The embedded runtime derives the names of pods' interfaces from that of the bridge, and one of 32 instances has some
/// that begin like a bridge.
fn bridges_in(dir: &str) -> Vec<String> {
    let mut names = names_in(dir);
    names.retain(|name| {
        name.starts_with(BRIDGE_PREFIX) && Path::new(dir).join(name).join("bridge").is_dir()
    });
    names
}

/// Removes the instance's bridge and all its ports.
pub(crate) fn remove(scratch: &Scratch) -> Result<()> {
    remove_bridge(&scratch.bridge())
}

pub(crate) fn remove_bridge(bridge: &str) -> Result<()> {
    for link in links_of_bridge(bridge) {
        let deleted = stdout_of(Command::new(IP).args(["link", "delete", &link]));
        // The kernel removes an interface by itself soon after its network namespace.
        if let Err(error) = deleted
            && names_in(INTERFACES).contains(&link)
        {
            return Err(error);
        }
    }
    Ok(())
}

fn links_of_bridge(bridge: &str) -> Vec<String> {
    let mut links = names_in(&format!("{INTERFACES}/{bridge}/brif"));
    links.extend(
        names_in(INTERFACES)
            .into_iter()
            .filter(|name| name == bridge),
    );
    links
}

fn names_in(dir: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_of_a_pod_is_no_bridge_whatever_its_name() {
        let dir = tempfile::tempdir().unwrap();
        for path in ["rbltAbCdEf/bridge", "rblttklcgntd6g5", "docker0/bridge"] {
            std::fs::create_dir_all(dir.path().join(path)).unwrap();
        }
        let found = bridges_in(&dir.path().display().to_string());
        assert_eq!(found, ["rbltAbCdEf"]);
    }
}
