//! A runtime, a proxy that injects faults before it, and an agent that knows only the proxy.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use chaos_cri::{Chaos, Rules, profile};
use rubelet_testbed::runtime::{AgentRuntime as _, Kind};
use rubelet_testbed::{Agent, CriTruth, target_dir};

use super::pods::Wanted;
use super::runtime::Runtime;

/// How long the agent waits for an answer: faults that last until it gives up should be over soon. A
/// start that a busy machine needs longer for is broken off, and containerd 2.1 then keeps a task that
/// nothing but its restart removes.
const REQUEST_TIMEOUT: &str = "30s";

/// All of it. What is dropped first stands first.
pub(super) struct Node {
    pub(super) agent: Agent,
    chaos: Chaos,
    pub(super) truth: CriTruth,
    pub(super) runtime: Runtime,
    /// What the proxy runs on.
    threads: tokio::runtime::Runtime,
}

impl Node {
    pub(super) fn start(
        kind: Kind,
        program: &Path,
        seed: u64,
        profile_name: &str,
        wanted: &Wanted,
    ) -> Result<Self> {
        let runtime = Runtime::start(kind, program)?;
        let rules = profile(profile_name, seed).context("there is no such profile")?;
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

    /// An error if the agent has ended by itself, which no fault may make it do.
    pub(super) fn check_running(&mut self) -> Result<()> {
        match self.agent.exit_status()? {
            Some(status) => bail!("the agent has ended by itself ({status})"),
            None => Ok(()),
        }
    }

    /// Lets everything pass from now on.
    pub(super) fn stop_faults(&self) {
        self.chaos.set_rules(Rules::none());
    }

    /// How many faults were injected.
    pub(super) fn injected(&self) -> u64 {
        self.chaos.injected().iter().map(|hit| hit.count).sum()
    }

    /// Copies the logs to a place that stays, with a report beside them; a line that tells where.
    pub(super) fn keep_logs(&self, seed: u64, report: &str) -> String {
        let kept = || -> Result<PathBuf> {
            let folder = target_dir::target()?.join("soak").join(seed.to_string());
            std::fs::create_dir_all(&folder)?;
            std::fs::copy(self.agent.log_path(), folder.join("agent.log"))?;
            std::fs::copy(self.runtime.log_path(), folder.join("runtime.log"))?;
            std::fs::write(folder.join("faults.log"), self.chaos.recent().join("\n"))?;
            std::fs::write(folder.join("report"), report)?;
            Ok(folder)
        };
        match kept() {
            Ok(folder) => format!("report, logs and faults: {}", folder.display()),
            Err(error) => format!("the logs could not be kept: {error:#}"),
        }
    }

    /// Removes everything; an error tells what could not be.
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
