//! What this machine is.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket},
    path::Path,
    sync::Arc,
};

use anyhow::{Context as _, bail};
use rubelet_config::{Flags, Resolved};
use rubelet_host::{CgroupFs, Machine};
use tracing::{info, warn};

/// The machine as a node.
pub(super) struct Node {
    pub(super) name: Arc<str>,
    pub(super) ips: Arc<[IpAddr]>,
    pub(super) machine: Machine,
    pub(super) cgroups: CgroupFs,
}

impl Node {
    /// Looks at the machine, once.
    pub(super) fn look(flags: &Flags, _: &Resolved) -> anyhow::Result<Self> {
        let machine = Machine::read(Path::new("/")).context("cannot tell what this machine is")?;
        let cgroups = CgroupFs::detect(Path::new("/")).context("cannot tell the cgroups")?;
        let name = flags
            .hostname_override()
            .unwrap_or(&machine.hostname)
            .trim()
            .to_lowercase();
        if name.is_empty() {
            bail!("the node has no name; set the host name or give --hostname-override");
        }
        let mut ips = flags.node_ips();
        if ips.is_empty() {
            ips = outward_addresses();
        }
        Ok(Self {
            name: name.into(),
            ips: ips.into(),
            machine,
            cgroups,
        })
    }
}

/// The addresses that traffic to the outside would carry: that of the default route first. No
/// packet is sent: connecting a UDP socket only chooses a route. The peers are documentation
/// addresses (RFC 5737, RFC 3849).
fn outward_addresses() -> Vec<IpAddr> {
    let local = |from: IpAddr, to: IpAddr| {
        let socket = UdpSocket::bind((from, 0)).ok()?;
        socket.connect((to, 9)).ok()?;
        let ip = socket.local_addr().ok()?.ip();
        (!ip.is_unspecified() && !ip.is_loopback()).then_some(ip)
    };
    let v4 = local(
        Ipv4Addr::UNSPECIFIED.into(),
        Ipv4Addr::new(192, 0, 2, 1).into(),
    );
    let v6 = local(
        Ipv6Addr::UNSPECIFIED.into(),
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
    );
    let mut found: Vec<IpAddr> = v4.into_iter().chain(v6).collect();
    if found.is_empty() {
        found.push(Ipv4Addr::LOCALHOST.into());
    }
    found
}

/// Makes the agent one of the last processes that the kernel kills for want of memory.
pub(super) fn set_oom_score(score: i32) {
    match fs::write("/proc/self/oom_score_adj", score.to_string()) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            info!(
                score,
                "The OOM score of the agent can't be lowered without CAP_SYS_RESOURCE"
            );
        }
        Err(error) => warn!(score, %error, "The OOM score of the agent can't be set"),
    }
}
