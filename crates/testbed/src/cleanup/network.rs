//! The bridge of an instance and the interfaces on it.

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
    names_in(INTERFACES)
        .into_iter()
        .filter(|name| name.starts_with(BRIDGE_PREFIX))
        .collect()
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
