//! A runtime, a fault-injecting proxy before it, and an agent that only uses the proxy.

use std::path::Path;

use anyhow::{Context, Result, bail};
use chaos_cri::{Chaos, Rules, profile};
use rubelet_testbed::agent::AgentRuntime as _;
use rubelet_testbed::runtime::Kind;
use rubelet_testbed::{Agent, CriTruth};

use super::kept::keep_logs;
use super::pods::DesiredPods;
use super::runtime::Runtime;

/// The agent's request timeout: faults that last until it expires should be over soon. A start that
/// takes longer on a busy machine is canceled, and containerd 2.1 then keeps a task that only its
/// restart removes.
const REQUEST_TIMEOUT: &str = "30s";

/// The whole node. The first fields are dropped first.
pub(super) struct Node {
    pub(super) agent: Agent,
    chaos: Chaos,
    pub(super) truth: CriTruth,
    pub(super) runtime: Runtime,
    /// The runtime behind the proxy.
    threads: tokio::runtime::Runtime,
}

impl Node {
    pub(super) fn start(
        kind: Kind,
        program: &Path,
        seed: u64,
        profile_name: &str,
        wanted: &DesiredPods,
    ) -> Result<Self> {
        let runtime = Runtime::start(kind, program)?;
        let rules = profile(profile_name, seed).context("unknown profile")?;
        let threads = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .context("cannot start an async runtime")?;
        let front = runtime.scratch().dir().join("chaos.sock");
        let back = runtime.socket();
        let chaos = Chaos::start(&front, &back, Rules::new(seed, rules));
        let chaos = threads.block_on(chaos)?;
        let mut builder = Agent::builder(&runtime)
            .program(program)
            .endpoint(format!("unix://{}", front.display()))
            .config("runtimeRequestTimeout", REQUEST_TIMEOUT);
        for pod in wanted.iter() {
            builder = builder.manifest(pod.file(), pod.manifest());
        }
        Ok(Self {
            agent: builder.start()?,
            chaos,
            truth: runtime.truth()?,
            runtime,
            threads,
        })
    }

    /// Fails if the agent has exited by itself, which no fault may cause.
    pub(super) fn check_running(&mut self) -> Result<()> {
        match self.agent.exit_status()? {
            Some(status) => bail!("the agent exited by itself ({status})"),
            None => Ok(()),
        }
    }

    /// Stops injecting faults.
    pub(super) fn stop_faults(&self) {
        self.chaos.set_rules(Rules::none());
    }

    /// Number of injected faults.
    pub(super) fn injected(&self) -> u64 {
        self.chaos.injected().iter().map(|hit| hit.count).sum()
    }

    /// Keeps the logs and the faults, with a report beside them; returns a line that names their directory.
    pub(super) fn keep_logs(&self, seed: u64, report: &str) -> String {
        let faults = self.runtime.scratch().dir().join("faults.log");
        // Without it the rest is kept.
        let _ = std::fs::write(&faults, self.chaos.recent().join("\n"));
        let files = [
            ("agent.log", self.agent.log_path()),
            ("runtime.log", self.runtime.log_path()),
            ("faults.log", faults),
        ];
        keep_logs(seed, &files, report)
    }

    /// Removes everything; the error lists failures.
    pub(super) fn remove(self) -> Result<()> {
        let Self {
            agent,
            chaos,
            truth,
            runtime,
            threads,
        } = self;
        drop(agent);
        drop(chaos);
        drop(truth);
        threads.shutdown_background();
        runtime.remove()
    }
}
