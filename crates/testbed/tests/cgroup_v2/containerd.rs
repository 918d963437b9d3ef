//! containerd in a guest, as most people run it: systemd starts it, and makes the cgroups of its containers.

use anyhow::Result;
use rubelet_testbed::vm::Image;
use rubelet_testbed::{images, packages};

/// The unit of containerd, much as its package has it.
const UNIT: &str = "[Unit]\nDefaultDependencies=no\n[Service]\nType=notify\n\
    Environment=PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n\
    ExecStart=/usr/local/bin/containerd\nDelegate=yes\nKillMode=process\n";
/// The network of the pods.
const NETWORK: &str = r#"{ "cniVersion": "1.0.0", "name": "pods", "plugins": [{
    "type": "bridge", "bridge": "cni0", "isGateway": true,
    "ipam": { "type": "host-local", "ranges": [[{ "subnet": "10.98.0.0/24" }]] } }] }"#;
/// The plugins that it needs.
const PLUGINS: [&str; 3] = ["bridge", "host-local", "loopback"];

/// Starts containerd and loads the images of containers.
pub(crate) const START: &str =
    "systemctl start containerd && ctr --namespace k8s.io images import /images.tar";
/// Flags of an agent that uses it.
pub(crate) const FLAGS: &str =
    "--container-runtime-endpoint unix:///run/containerd/containerd.sock";

/// Adds containerd to an image with systemd.
pub(crate) fn add(image: Image) -> Result<Image> {
    packages::ensure()?;
    let bin = packages::containerd::ensure()?.bin;
    let names = ["containerd", "containerd-shim-runc-v2", "ctr"];
    let image = names.into_iter().fold(image, |image, name| {
        image.program(&format!("/usr/local/bin/{name}"), bin.join(name))
    });
    let plugins = PLUGINS.map(|name| format!("/usr/lib/cni/{name}"));
    let image = plugins
        .iter()
        .map(String::as_str)
        .chain(["/usr/sbin/runc"])
        .fold(image, |image, path| image.program(path, path));
    Ok(image
        .file("/etc/containerd/config.toml", configuration())
        .file("/etc/cni/net.d/10-pods.conflist", NETWORK)
        .file("/etc/systemd/system/containerd.service", UNIT))
}

fn configuration() -> String {
    let runtime = "plugins.'io.containerd.cri.v1.runtime'";
    let pause = images::PAUSE;
    format!(
        "version = 3
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = '{pause}'
[{runtime}]
disable_apparmor = true
[{runtime}.cni]
bin_dirs = ['/usr/lib/cni']
[{runtime}.containerd.runtimes.runc]
runtime_type = 'io.containerd.runc.v2'
[{runtime}.containerd.runtimes.runc.options]
BinaryName = '/usr/sbin/runc'
SystemdCgroup = true
"
    )
}
