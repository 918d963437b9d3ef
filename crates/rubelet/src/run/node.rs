//! Facts about this machine.

mod ips;

use std::{fs, path::Path, sync::Arc};

use anyhow::{Context as _, bail};
use rubelet_api::parse::is_node_name;
use rubelet_cgroup_plan::CgroupPath;
use rubelet_config::{Flags, Resolved};
use rubelet_host::{CgroupFs, Machine};
use tracing::{info, warn};

pub(crate) use self::ips::FollowedIps;

/// The machine as a node.
pub(super) struct Node {
    pub(super) name: Arc<str>,
    pub(super) ips: FollowedIps,
    pub(super) machine: Machine,
    pub(super) cgroups: CgroupFs,
}

impl Node {
    /// Inspects the machine, once. Only its addresses are updated later.
    pub(super) fn detect(flags: &Flags, _: &Resolved) -> anyhow::Result<Self> {
        let machine =
            Machine::read(Path::new("/")).context("cannot read the facts of this machine")?;
        let cgroups = CgroupFs::detect(Path::new("/sys/fs/cgroup"))
            .context("cannot detect the cgroup version")?;
        let name = name(flags.hostname_override(), &machine.hostname)?;
        Ok(Self {
            name: name.into(),
            ips: FollowedIps::detect(flags.node_ips()),
            machine,
            cgroups,
        })
    }
}

/// The node's name, as the kubelet computes it: static pods have it as a suffix, so an invalid one
/// would break every pod.
fn name(asked: Option<&str>, hostname: &str) -> anyhow::Result<String> {
    let name = asked.unwrap_or(hostname).trim().to_lowercase();
    if name.is_empty() {
        bail!("the node has no name; set the host name or give --hostname-override");
    }
    if !is_node_name(&name) {
        let origin = match asked {
            Some(_) => "--hostname-override",
            None => "the host name",
        };
        bail!(
            "{name:?} ({origin}) is not a valid node name: use a DNS name of at most 253 lower-case letters, \
             digits, '-' and '.', with a letter or digit at both ends of each part; set another one \
             with --hostname-override"
        );
    }
    Ok(name)
}

/// Makes the agent one of the last victims of the OOM killer.
pub(super) fn set_oom_score(score: i32) {
    match fs::write("/proc/self/oom_score_adj", score.to_string()) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            info!(
                score,
                "Cannot lower the OOM score of the agent without CAP_SYS_RESOURCE"
            );
        }
        Err(error) => warn!(score, %error, "Cannot set the OOM score of the agent"),
    }
}

/// The cgroup that a field names; `None` if it is empty.
///
/// # Errors
/// The name is not one of a cgroup.
pub(super) fn configured_cgroup(
    field: &'static str,
    name: &str,
) -> anyhow::Result<Option<CgroupPath>> {
    if name.is_empty() {
        return Ok(None);
    }
    let path = CgroupPath::parse(name.trim_end_matches('/')).context(field)?;
    Ok(Some(path))
}

/// `kubeletCgroups`: moves the agent into that cgroup, which is created if it does not exist.
///
/// # Errors
/// The name is not one of a cgroup, or the kernel refuses.
pub(super) fn join_cgroup(name: &str, cgroups: &CgroupFs) -> anyhow::Result<()> {
    let Some(path) = configured_cgroup("kubeletCgroups", name)? else {
        return Ok(());
    };
    let joined = || -> anyhow::Result<()> {
        let target = cgroups.create(&path)?;
        target.add(i32::try_from(std::process::id())?)?;
        Ok(())
    };
    joined()
        .with_context(|| format!("kubeletCgroups: cannot move the agent into the cgroup {path}"))
}

/// Sets this process's limit of open files: `maxOpenFiles`, as a kubelet does at its start. Its
/// children get the original limits.
pub(super) fn allow_open_files(most: i64) {
    let most = u64::try_from(most).unwrap_or_default();
    if let Some(problem) = rubelet_host::open_files::allow(most) {
        warn!("maxOpenFiles: {problem}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_no_pod_could_carry_is_refused() {
        assert_eq!(
            name(None, "Node1.Example.org\n").unwrap(),
            "node1.example.org"
        );
        assert_eq!(name(Some("n2"), "my_host").unwrap(), "n2");
        for (asked, hostname, part) in [
            (None, "my_host", "\"my_host\" (the host name) is not"),
            (Some("a_b"), "n1", "\"a_b\" (--hostname-override) is not"),
            (Some("-a"), "n1", "--hostname-override"),
            (Some(" "), "n1", "the node has no name"),
        ] {
            let error = name(asked, hostname).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
