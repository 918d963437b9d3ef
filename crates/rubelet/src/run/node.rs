//! What this machine is.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr},
    path::Path,
    sync::Arc,
};

use anyhow::{Context as _, bail};
use rubelet_config::{Flags, Resolved};
use rubelet_host::{CgroupFs, Machine, address};
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
        let cgroups =
            CgroupFs::detect(Path::new("/sys/fs/cgroup")).context("cannot tell the cgroups")?;
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
            ips = address::outward();
        }
        if ips.is_empty() {
            ips.push(Ipv4Addr::LOCALHOST.into());
        }
        Ok(Self {
            name: name.into(),
            ips: ips.into(),
            machine,
            cgroups,
        })
    }
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
