//! One `rubelet run` on a private runtime, with its own directories, socket, port and cgroup.

mod builder;
mod notify;
mod ports;
pub(crate) mod process;
mod waiting;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

pub use builder::AgentBuilder;
pub(crate) use builder::endpoint_flags;
pub use notify::Notification;
pub use ports::free_port;

use crate::command::output_of;
use crate::http::{self, Response};
use crate::scratch::Scratch;
use crate::{report, target_dir};
use notify::Receiver;
use process::Process;

/// Timeout of a graceful exit.
const END_TIMEOUT: Duration = Duration::from_secs(60);
/// The environment variable that names the program to test.
const BINARY_VARIABLE: &str = "RUBELET_BIN";

/// A runtime that an agent can be started on.
pub trait AgentRuntime {
    /// The directory and name of the instance.
    fn scratch(&self) -> &Scratch;

    /// The flags of `rubelet run` that make an agent use it.
    fn agent_flags(&self) -> Vec<OsString>;

    /// The log of its own process; `None` if it runs in the agent.
    fn runtime_log(&self) -> Option<PathBuf>;
}

/// An agent. It is killed when the value is dropped; its containers are removed with their runtime.
#[derive(Debug)]
pub struct Agent {
    scratch: Scratch,
    dir: PathBuf,
    node_name: String,
    healthz_port: u16,
    runtime_log: Option<PathBuf>,
    receiver: Receiver,
    pub(crate) process: Process,
}

/// Output and exit code of a `rubelet` command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CliOutput {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// The exit code; -1 if a signal killed it.
    pub code: i32,
}

/// The program to test: `RUBELET_BIN`, else the `rubelet` that cargo built beside the running
/// program.
///
/// # Errors
/// It does not exist.
pub fn binary() -> Result<PathBuf> {
    let path = match std::env::var_os(BINARY_VARIABLE) {
        Some(path) => PathBuf::from(path),
        None => target_dir::profile()?.join("rubelet"),
    };
    if !path.is_file() {
        bail!(
            "{} is not there: build it with `cargo build --package rubelet`, or name another \
             one in {BINARY_VARIABLE}",
            path.display()
        );
    }
    Ok(path)
}

impl Agent {
    /// An agent on `runtime`, to be configured and started.
    pub fn builder(runtime: &impl AgentRuntime) -> AgentBuilder {
        AgentBuilder::new(runtime)
    }

    /// Starts the agent again after it has exited. Does not wait for readiness.
    ///
    /// # Errors
    /// When it runs already, or can't be started.
    pub fn start(&mut self) -> Result<()> {
        self.receiver.forget();
        self.process.start()
    }

    /// Kills the agent and waits for its exit. Its containers continue.
    ///
    /// # Errors
    /// When it doesn't run.
    pub fn kill9(&mut self) -> Result<()> {
        self.process.kill9()
    }

    /// Sends SIGTERM to the agent, as systemd does, and waits for its exit.
    ///
    /// # Errors
    /// When it doesn't run, or doesn't end within a minute.
    pub fn terminate(&mut self) -> Result<ExitStatus> {
        let ended = self.process.terminate(END_TIMEOUT);
        ended.map_err(|error| self.explained(&error))
    }

    /// [`Agent::terminate`], then [`Agent::start`].
    ///
    /// # Errors
    /// As those.
    pub fn restart(&mut self) -> Result<()> {
        self.terminate()?;
        self.start()
    }

    /// Changes the node's name at the next start.
    pub fn rename_node(&mut self, name: &str) {
        let old = std::mem::replace(&mut self.node_name, name.to_owned());
        let words = &mut self.process.arguments;
        for word in words.iter_mut().filter(|word| **word == *old) {
            *word = name.into();
        }
    }

    /// The agent's process id; `None` while it isn't running.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.process.pid()
    }

    /// Time of the agent's last start.
    #[must_use]
    pub fn started_at(&self) -> Option<Instant> {
        self.process.started_at()
    }

    /// How the agent exited by itself, if it did.
    ///
    /// # Errors
    /// The kernel does not report it.
    pub fn exit_status(&mut self) -> Result<Option<ExitStatus>> {
        self.process.exit_status()
    }

    /// The manifest directory.
    #[must_use]
    pub fn manifest_dir(&self) -> PathBuf {
        self.dir.join(builder::MANIFESTS)
    }

    /// The root directory, with its state and the pods' volumes.
    #[must_use]
    pub fn root_dir(&self) -> PathBuf {
        self.dir.join(builder::ROOT)
    }

    /// The directory of the pods' logs.
    #[must_use]
    pub fn pod_logs_dir(&self) -> PathBuf {
        self.dir.join(builder::POD_LOGS)
    }

    /// The file of the agent's own log.
    #[must_use]
    pub fn log_path(&self) -> PathBuf {
        self.dir.join(builder::LOG)
    }

    /// The socket of its local API.
    #[must_use]
    pub fn api_socket(&self) -> PathBuf {
        self.dir.join(builder::API_SOCKET)
    }

    /// Its configuration file.
    #[must_use]
    pub fn config_path(&self) -> PathBuf {
        self.dir.join(builder::CONFIG)
    }

    /// The port of `/healthz` on 127.0.0.1.
    #[must_use]
    pub fn healthz_port(&self) -> u16 {
        self.healthz_port
    }

    /// Writes a manifest into the directory atomically, by a rename from outside.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn write_manifest(&self, name: &str, text: &str) -> Result<()> {
        builder::write_manifest(&self.dir, name, text)
    }

    /// Removes a manifest from the directory.
    ///
    /// # Errors
    /// When it isn't there.
    pub fn remove_manifest(&self, name: &str) -> Result<()> {
        let path = self.manifest_dir().join(name);
        std::fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))
    }

    /// GET from the local API.
    ///
    /// # Errors
    /// When the agent doesn't answer.
    pub fn get(&self, path: &str) -> Result<Response> {
        http::get_unix(&self.api_socket(), path)
    }

    /// GET of JSON from the local API.
    ///
    /// # Errors
    /// When the agent doesn't answer with status 200 and JSON.
    pub fn get_json(&self, path: &str) -> Result<Value> {
        let response = self.get(path)?;
        if response.status != 200 {
            bail!(
                "GET {path} gave status {}: {}",
                response.status,
                response.text()
            );
        }
        serde_json::from_slice(&response.body)
            .with_context(|| format!("GET {path} returned no JSON: {}", response.text()))
    }

    /// PATCH of an object of the local API; `kind` is the patch type, such as
    /// `strategic-merge-patch`.
    ///
    /// # Errors
    /// When the agent doesn't answer.
    pub fn patch(&self, path: &str, kind: &str, patch: &Value) -> Result<Response> {
        let content_type = format!("application/{kind}+json");
        let body = patch.to_string();
        http::send_unix(&self.api_socket(), "PATCH", path, &content_type, &body)
    }

    /// The name of a static pod: the manifest's name with the node's name as a suffix.
    #[must_use]
    pub fn full_name(&self, name: &str) -> String {
        format!("{name}-{}", self.node_name)
    }

    /// All pods in the local API.
    ///
    /// # Errors
    /// As [`Agent::get_json`].
    pub fn pods(&self) -> Result<Vec<Value>> {
        let mut list = self.get_json("/api/v1/pods")?;
        match list["items"].take() {
            Value::Array(items) => Ok(items),
            _ => bail!("the pod list has no items: {list}"),
        }
    }

    /// The pod of a manifest with that name, without the node's name.
    ///
    /// # Errors
    /// As [`Agent::get_json`].
    pub fn pod(&self, name: &str) -> Result<Option<Value>> {
        let full = self.full_name(name);
        let mut pods = self.pods()?;
        pods.retain(|pod| pod["metadata"]["name"] == full);
        Ok(pods.pop())
    }

    /// GET from the health port.
    ///
    /// # Errors
    /// When the agent doesn't answer.
    pub fn health(&self, path: &str) -> Result<Response> {
        http::get_tcp(&format!("127.0.0.1:{}", self.healthz_port), path)
    }

    /// Runs a command of `rubelet` against this agent.
    ///
    /// # Errors
    /// When it can't be started; an exit code other than 0 is not an error.
    pub fn cli(&self, arguments: &[&str]) -> Result<CliOutput> {
        let output = output_of(self.cli_command().args(arguments))?;
        Ok(CliOutput {
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            code: output.status.code().unwrap_or(-1),
        })
    }

    /// The beginning of a command line against this agent, for commands that do not exit by
    /// themselves.
    #[must_use]
    pub fn cli_command(&self) -> Command {
        let mut command = self.scratch.command(&self.process.program);
        command.env("RUBELET_SOCKET", self.api_socket());
        command
    }

    /// The agent's messages to systemd since its last start.
    #[must_use]
    pub fn notifications(&self) -> Vec<Notification> {
        self.receiver.all()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if std::thread::panicking() {
            report::say(&self.circumstances());
        }
        if self.pid().is_some()
            && let Err(error) = self.kill9()
        {
            report::say(&format!("{error:#}"));
        }
    }
}
