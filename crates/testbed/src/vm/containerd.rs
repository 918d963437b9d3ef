//! containerd in a guest, as most people run it: systemd starts it, and makes the cgroups of its containers.

use std::path::Path;

use anyhow::Result;

use super::image::Image;
use crate::containerd::{config, setup};
use crate::daemon::SOCKET;
use crate::packages::{self, CNI_PLUGINS, RUNC};

/// All of it. A guest has another file system on `/var/lib`, which hides what its image has there.
const DIR: &str = "/containerd";

/// The network of the pods.
const NETWORK: &str = r#"{ "cniVersion": "1.0.0", "name": "pods", "plugins": [{
    "type": "bridge", "bridge": "cni0", "isGateway": true,
    "ipam": { "type": "host-local", "ranges": [[{ "subnet": "10.98.0.0/24" }]] } }] }"#;

/// The path of the socket of [`Image::containerd`].
#[must_use]
pub fn containerd_socket() -> String {
    format!("{DIR}/{SOCKET}")
}

impl Image {
    /// Adds the newest containerd, as the unit `containerd` of systemd, which [`Image::systemd`] adds.
    ///
    /// # Errors
    /// A package can't be installed.
    pub fn containerd(self) -> Result<Self> {
        packages::ensure()?;
        let binaries = packages::containerd::ensure()?;
        let layout = config::Layout {
            dir: Path::new(DIR),
            snapshotter: "overlayfs",
            systemd_cgroup: true,
        };
        let mut image = self
            .programs([RUNC])
            .file(
                &format!("{DIR}/{}", config::FILE),
                config::main_file(layout, binaries.major()),
            )
            .file(&format!("{DIR}/cni/conf/10-pods.conflist"), NETWORK)
            .file("/etc/systemd/system/containerd.service", unit());
        for name in ["containerd", "containerd-shim-runc-v2", "ctr"] {
            image = image.program(&format!("/usr/local/bin/{name}"), binaries.bin.join(name));
        }
        for name in setup::PLUGINS {
            let plugin = Path::new(CNI_PLUGINS).join(name);
            image = image.program(&format!("{DIR}/cni/bin/{name}"), plugin);
        }
        Ok(image)
    }
}

/// The unit, much as its package has it.
fn unit() -> String {
    format!(
        "[Unit]\nDefaultDependencies=no\n[Service]\nType=notify\n\
         Environment=PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n\
         ExecStart=/usr/local/bin/containerd --config {DIR}/{}\nDelegate=yes\nKillMode=process\n",
        config::FILE
    )
}
