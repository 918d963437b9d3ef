//! The containerd process: start, stop, kill.

use std::fs::OpenOptions;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};

use crate::packages::containerd::Binaries;
use crate::scratch::Scratch;
use crate::wait;

/// The file name of the main configuration file.
pub(super) const CONFIG_FILE: &str = "containerd.toml";

#[derive(Debug)]
pub(crate) struct Daemon {
    scratch: Scratch,
    bin: PathBuf,
    child: Option<Child>,
}

impl Daemon {
    pub(super) fn new(scratch: &Scratch, binaries: &Binaries) -> Self {
        Self {
            scratch: scratch.clone(),
            bin: binaries.bin.clone(),
            child: None,
        }
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Starts the process unless it runs. Does not wait for readiness.
    pub(super) fn start(&mut self) -> Result<()> {
        if let Some(child) = &mut self.child
            && child.try_wait()?.is_none()
        {
            return Ok(());
        }
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.scratch.dir().join("containerd.log"))?;
        // containerd finds its shim, and CNI plugins find iptables, in the PATH.
        let path = format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", self.bin.display());
        let child = self
            .scratch
            .command(self.bin.join("containerd"))
            .arg("--config")
            .arg(self.scratch.dir().join(CONFIG_FILE))
            .env("PATH", path)
            // Ctrl-C at a terminal must reach only the program that runs the test bed.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::from(log.try_clone()?))
            .stderr(Stdio::from(log))
            .spawn()
            .context("cannot start containerd")?;
        self.child = Some(child);
        Ok(())
    }

    /// Sends SIGTERM to the process and waits for its exit.
    pub(super) fn halt(&mut self, timeout: Duration) -> Result<()> {
        let Some(mut child) = self.child.take() else {
            return Ok(());
        };
        signal(&child, Signal::TERM)?;
        wait::until("containerd has ended", timeout, || {
            Ok(child.try_wait()?.map(drop))
        })
    }

    /// Kills the process and waits for its exit.
    pub(super) fn kill9(&mut self) -> Result<()> {
        let Some(mut child) = self.child.take() else {
            return Ok(());
        };
        child.kill().context("cannot kill containerd")?;
        child.wait().context("cannot wait for containerd")?;
        Ok(())
    }
}

/// Sends a signal to an unreaped child, so that its PID can't be reused.
pub(crate) fn signal(child: &Child, signal: Signal) -> Result<()> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.context("a child has no valid process id")?;
    kill_process(pid, signal).with_context(|| format!("cannot signal process {}", child.id()))
}
