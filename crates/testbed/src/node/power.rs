//! Simulates a power loss and a reboot.

use anyhow::Result;

use super::{Node, TIMEOUT};
use crate::TestRuntime;
use crate::cleanup::processes;

impl Node {
    /// Kills everything at once, as in a power loss, and restarts it: the agent, the runtime, but
    /// no container. To the embedded runtime it is another boot: its run directory is empty,
    /// mounts, cgroups and network interfaces are gone, and the kernel reports another boot ID.
    ///
    /// # Errors
    /// When something doesn't end, or doesn't start again.
    pub fn lose_power(&mut self) -> Result<()> {
        self.agent.kill9()?;
        match &self.runtime {
            TestRuntime::Containerd(containerd) => containerd.kill9()?,
            TestRuntime::Crio(crio) => crio.kill9()?,
            TestRuntime::Embedded(_) => {}
        }
        processes::kill_all(self.runtime.scratch())?;
        match &self.runtime {
            TestRuntime::Containerd(containerd) => containerd.resume()?,
            TestRuntime::Crio(crio) => crio.resume()?,
            TestRuntime::Embedded(embedded) => {
                self.agent.process.boot_id = Some(embedded.lose_power()?);
            }
        }
        self.agent.start()?;
        self.agent.wait_ready(TIMEOUT)
    }
}
