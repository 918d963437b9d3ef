//! The configuration files of one private containerd, in the format of its version.

use std::path::Path;

use crate::daemon::SOCKET;
use crate::packages::RUNC;
use crate::scratch::{REGISTRY_HOSTS, Scratch};

use super::HostPorts;

/// The name of the main file.
pub(crate) const FILE: &str = "containerd.toml";

/// The image of the sandbox container, built by [`crate::images`].
const SANDBOX_IMAGE: &str = crate::images::PAUSE;

/// The directories of one containerd.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout<'a> {
    pub(crate) dir: &'a Path,
    pub(crate) snapshotter: &'a str,
    /// Whether systemd makes the cgroups of containers.
    pub(crate) systemd_cgroup: bool,
}

/// The main configuration file: version 3 since containerd 2, version 2 before.
pub(crate) fn main_file(layout: Layout<'_>, major: u32) -> String {
    if major >= 2 {
        config_version_3(layout)
    } else {
        config_version_2(layout)
    }
}

fn config_version_3(layout: Layout<'_>) -> String {
    let Layout {
        dir,
        snapshotter,
        systemd_cgroup,
    } = layout;
    let dir = dir.display();
    let runtime = "plugins.'io.containerd.cri.v1.runtime'";
    let images = "plugins.'io.containerd.cri.v1.images'";
    format!(
        "version = 3\n{head}
[{images}]
snapshotter = '{snapshotter}'
[{images}.pinned_images]
sandbox = '{SANDBOX_IMAGE}'
[{images}.registry]
config_path = '{dir}/{REGISTRY_HOSTS}'
[{runtime}]
restrict_oom_score_adj = true
disable_apparmor = true
netns_mounts_under_state_dir = true
[{runtime}.cni]
bin_dirs = ['{dir}/cni/bin']
conf_dir = '{dir}/cni/conf'
[{runtime}.containerd.runtimes.runc]
runtime_type = 'io.containerd.runc.v2'
[{runtime}.containerd.runtimes.runc.options]
BinaryName = '{RUNC}'
Root = '{dir}/runc'
SystemdCgroup = {systemd_cgroup}
",
        head = head(&dir.to_string()),
    )
}

fn config_version_2(layout: Layout<'_>) -> String {
    let Layout {
        dir,
        snapshotter,
        systemd_cgroup,
    } = layout;
    let dir = dir.display();
    let cri = "plugins.'io.containerd.grpc.v1.cri'";
    format!(
        "version = 2\n{head}
[{cri}]
restrict_oom_score_adj = true
disable_apparmor = true
netns_mounts_under_state_dir = true
sandbox_image = '{SANDBOX_IMAGE}'
[{cri}.registry]
config_path = '{dir}/{REGISTRY_HOSTS}'
[{cri}.cni]
bin_dir = '{dir}/cni/bin'
conf_dir = '{dir}/cni/conf'
[{cri}.containerd]
snapshotter = '{snapshotter}'
[{cri}.containerd.runtimes.runc]
runtime_type = 'io.containerd.runc.v2'
[{cri}.containerd.runtimes.runc.options]
BinaryName = '{RUNC}'
Root = '{dir}/runc'
SystemdCgroup = {systemd_cgroup}
",
        head = head(&dir.to_string()),
    )
}

fn head(dir: &str) -> String {
    format!(
        "root = '{dir}/root'
state = '{dir}/state'
temp = '{dir}/temp'
[grpc]
address = '{dir}/{SOCKET}'
[plugins.'io.containerd.internal.v1.opt']
path = '{dir}/opt'
[plugins.'io.containerd.nri.v1.nri']
disable = true"
    )
}

/// The network of the pods: one private bridge, addresses from the instance's subnet, and host
/// ports through NAT if requested. Pods reach each other and the host; nothing is forwarded to the
/// outside.
pub(super) fn network(scratch: &Scratch, host_ports: HostPorts) -> serde_json::Value {
    let mut network = serde_json::json!({
        "cniVersion": "1.0.0",
        "name": scratch.network_name(),
        "plugins": [
            {
                "type": "bridge",
                "bridge": scratch.bridge(),
                "isGateway": true,
                "hairpinMode": true,
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{ "subnet": scratch.subnet() }]],
                    "routes": [{ "dst": "0.0.0.0/0" }],
                    "dataDir": scratch.dir().join("cni/addresses"),
                },
            },
        ],
    });
    if let (HostPorts::Mapped, Some(plugins)) = (host_ports, network["plugins"].as_array_mut()) {
        plugins.push(serde_json::json!({
            "type": "portmap",
            "capabilities": { "portMappings": true },
        }));
    }
    network
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_major_version_gets_its_configuration_format() {
        let layout = Layout {
            dir: Path::new("/tmp/x"),
            snapshotter: "overlayfs",
            systemd_cgroup: false,
        };
        for (major, first_line) in [(1, "version = 2"), (2, "version = 3"), (3, "version = 3")] {
            let text = main_file(layout, major);
            assert_eq!(text.lines().next(), Some(first_line));
            assert!(text.contains("restrict_oom_score_adj = true"));
            assert!(text.contains("address = '/tmp/x/c.sock'"));
            assert!(!text.contains("/run/"), "{text}");
        }
    }
}
