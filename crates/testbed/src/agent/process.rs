//! The agent's process: start, stop, kill.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use crate::proc::signal;
use crate::scratch::Scratch;
use crate::{clock, proc, wait};

/// Bind-mounts a file (`$0`) over the kernel's boot ID, for the program that follows.
const OTHER_BOOT: &str = "mount --make-private /proc && \
     mount --bind \"$0\" /proc/sys/kernel/random/boot_id && exec \"$@\"";

#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) scratch: Scratch,
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) log: PathBuf,
    pub(crate) child: Option<Child>,
    pub(crate) started_at: Option<Instant>,
    /// A file with the boot ID that this process sees instead of the machine's.
    pub(crate) boot_id: Option<PathBuf>,
}

impl Process {
    pub(crate) fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    pub(crate) fn started_at(&self) -> Option<Instant> {
        self.started_at
    }

    pub(crate) fn start(&mut self) -> Result<()> {
        if self.exit_status()?.is_none() && self.child.is_some() {
            bail!("the agent is already running");
        }
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.log)?;
        let mut command = self.command();
        command
            .args(&self.arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            // Ctrl-C at a terminal must reach only the program that runs the test bed.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::from(log.try_clone()?))
            .stderr(Stdio::from(log));
        self.started_at = Some(clock::now());
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {}", self.program.display()))?;
        self.child = Some(child);
        Ok(())
    }

    /// The program, in a private mount namespace if it must see another boot ID.
    fn command(&self) -> Command {
        let Some(boot_id) = &self.boot_id else {
            return self.scratch.command(&self.program);
        };
        let mut command = self.scratch.command("unshare");
        command
            .args(["--mount", "--propagation", "unchanged", "sh", "-c"])
            .arg(OTHER_BOOT)
            .arg(boot_id)
            .arg(&self.program);
        command
    }

    pub(crate) fn kill9(&mut self) -> Result<()> {
        let Some(mut child) = self.child.take() else {
            bail!("the agent isn't running")
        };
        child.kill().context("cannot kill the agent")?;
        child.wait().context("cannot wait for the agent's exit")?;
        Ok(())
    }

    pub(crate) fn terminate(&mut self, timeout: Duration) -> Result<ExitStatus> {
        let Some(child) = &mut self.child else {
            bail!("the agent isn't running")
        };
        signal(child, Signal::TERM)?;
        let status = wait::until("the agent has ended", timeout, || Ok(child.try_wait()?))?;
        self.child = None;
        Ok(status)
    }

    /// Whether the process was started and has exited by itself since.
    pub(crate) fn has_ended(&self) -> bool {
        self.pid()
            .is_some_and(|pid| proc::Stat::of(pid).is_none_or(|stat| stat.state == 'Z'))
    }

    /// How the process exited by itself, if it did.
    pub(crate) fn exit_status(&mut self) -> Result<Option<ExitStatus>> {
        let ended = self.has_ended();
        match &mut self.child {
            // Its first thread has exited; the others may need a moment until it can be reaped.
            Some(child) if ended => Ok(Some(child.wait()?)),
            Some(child) => Ok(child.try_wait()?),
            None => Ok(None),
        }
    }
}
