//! The state of the host before the first instance, which is restored after the last one.

use anyhow::Result;

use super::Scratch;
use crate::cleanup::{iptables, shared_files};

/// The name of the file in each instance's directory.
pub(crate) const FILE: &str = "host-before";
const FORWARDING: &str = "/proc/sys/net/ipv4/ip_forward";

/// Changes by runtimes, CNI plugins and agents that do not carry an instance's name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct HostBefore {
    /// The kernel's `ip_forward` sysctl; the bridge plugin enables it.
    pub(crate) ip_forward: String,
    /// Names of the shared NAT chains that the portmap plugin creates and never removes.
    pub(crate) chains: Vec<String>,
    /// The shared directories of runtimes and kubelets that existed.
    pub(crate) directories: Vec<String>,
}

impl HostBefore {
    /// The state before the first of the current instances.
    pub(crate) fn of_first(others: &[Scratch]) -> Result<Self> {
        if let Some(known) = others.iter().find_map(Scratch::host_before) {
            return Ok(known);
        }
        let ip_forward = std::fs::read_to_string(FORWARDING).unwrap_or_default();
        Ok(Self {
            ip_forward: ip_forward.trim().to_owned(),
            chains: iptables::shared_chains()?,
            directories: shared_files::existing_directories(),
        })
    }

    /// Restores the state. Only valid if no instance is left.
    pub(crate) fn restore(&self) -> Result<()> {
        if self.ip_forward == "0" {
            std::fs::write(FORWARDING, "0\n")?;
        }
        shared_files::remove_empty_directories(&self.directories);
        iptables::remove_shared_chains(&self.chains)
    }

    pub(crate) fn to_text(&self) -> String {
        let Self {
            ip_forward,
            chains,
            directories,
        } = self;
        format!(
            "{ip_forward}\n{}\n{}\n",
            chains.join(" "),
            directories.join(" ")
        )
    }

    pub(crate) fn parse(text: &str) -> Self {
        let mut lines = text.lines().map(str::to_owned);
        let ip_forward = lines.next().unwrap_or_default();
        let mut words = || {
            let line = lines.next().unwrap_or_default();
            line.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        Self {
            ip_forward,
            chains: words(),
            directories: words(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_state_is_parsed_back() {
        let before = HostBefore {
            ip_forward: "1".into(),
            chains: vec!["CNI-HOSTPORT-MASQ".into()],
            directories: vec!["/var/lib/cni".into(), "/run/containerd".into()],
        };
        assert_eq!(HostBefore::parse(&before.to_text()), before);
        assert_eq!(
            HostBefore::parse(&HostBefore::default().to_text()),
            HostBefore::default()
        );
    }
}
