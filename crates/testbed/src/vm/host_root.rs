//! The root directory of this machine in a guest, so that a guest has whatever is installed here. It is read only there:
//! what the guest writes is in its memory.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use anyhow::{Context, Result};

use crate::packages;
use crate::scratch::Scratch;

/// The modules of the guest's kernel that it needs.
pub(super) const MODULES: [&str; 3] = ["virtio_pci", "virtiofs", "overlay"];
/// The variable of `init.sh` that asks for it, for the kernel's command line.
pub(super) const OPTION: &str = "host_root=1";
/// The file with what the daemon says, in the directory of the guest.
pub(super) const LOG: &str = "virtiofsd";

/// A daemon that gives one guest the files. It is stopped when the value is dropped.
#[derive(Debug)]
pub(super) struct HostRoot {
    daemon: Child,
    socket: PathBuf,
}

impl HostRoot {
    /// Starts the daemon.
    pub(super) fn serve(scratch: &Scratch) -> Result<Self> {
        let program = packages::ensure_virtiofsd()?;
        let socket = scratch.dir().join("root.sock");
        // By a path, the daemon would leave a lock file in /run.
        let listener = UnixListener::bind(&socket)
            .with_context(|| format!("cannot listen on {}", socket.display()))?;
        let mut command = scratch.command(program);
        command
            .args(["--fd=0", "-o", "source=/", "-o", "cache=always"])
            // Its own files are all that it needs, and the guest is ours.
            .args(["-o", "sandbox=chroot"])
            .stdin(OwnedFd::from(listener))
            .stdout(Stdio::null())
            .stderr(File::create(scratch.dir().join(LOG))?);
        let daemon = command
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Self { daemon, socket })
    }

    /// The emulator's arguments, for a guest with this much memory in MiB, which the daemon shares.
    pub(super) fn arguments(&self, memory_mib: u32) -> [String; 8] {
        [
            "-object".to_owned(),
            format!("memory-backend-memfd,id=memory,size={memory_mib}M,share=on"),
            "-numa".to_owned(),
            "node,memdev=memory".to_owned(),
            "-chardev".to_owned(),
            format!("socket,id=root,path={}", self.socket.display()),
            "-device".to_owned(),
            "vhost-user-fs-pci,chardev=root,tag=host".to_owned(),
        ]
    }
}

impl Drop for HostRoot {
    fn drop(&mut self) {
        // It exits by itself with the emulator.
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}
