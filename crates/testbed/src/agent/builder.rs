//! Configures an agent: its directories, configuration file, flags and environment.

use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use super::notify::Receiver;
use super::ports::free_port;
use super::process::Process;
use super::{Agent, AgentRuntime, binary};
use crate::cgroup_driver::CgroupDriver;
use crate::cleanup::cgroups;
use crate::scratch::Scratch;

/// The default name of the node.
const NODE_NAME: &str = "testnode";

pub(super) const MANIFESTS: &str = "manifests";
pub(super) const ROOT: &str = "root";
pub(super) const POD_LOGS: &str = "logs";
pub(super) const LOG: &str = "agent.log";
pub(super) const API_SOCKET: &str = "api.sock";
pub(super) const CONFIG: &str = "config.yaml";
/// The key for secrets on disk, beside the root directory.
const SECRETS_KEY: &str = "secrets.key";
const NOTIFY_SOCKET: &str = "notify.sock";
/// Where manifests are written before they are moved into their directory.
const STAGING: &str = "staging";

/// The settings of an agent.
#[derive(Debug)]
#[must_use]
pub struct AgentBuilder {
    scratch: Scratch,
    runtime_log: Option<PathBuf>,
    runtime_flags: Vec<OsString>,
    node_name: String,
    program: Option<PathBuf>,
    config: Map<String, Value>,
    flags: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    manifests: Vec<(String, String)>,
}

impl AgentBuilder {
    pub(super) fn new(runtime: &impl AgentRuntime) -> Self {
        Self {
            scratch: runtime.scratch().clone(),
            runtime_log: runtime.runtime_log(),
            runtime_flags: runtime.agent_flags(),
            node_name: NODE_NAME.to_owned(),
            program: None,
            config: Map::new(),
            flags: Vec::new(),
            environment: Vec::new(),
            manifests: Vec::new(),
        }
    }

    /// The directory of the instance that the agent will belong to, for files in its configuration.
    #[must_use]
    pub fn scratch(&self) -> &Scratch {
        &self.scratch
    }

    /// Sets a field of the KubeletConfiguration, overriding the test bed's value.
    pub fn config(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.config.insert(field.to_owned(), value.into());
        self
    }

    /// Sets one of Rubelet's own options, a field below `rubelet:`.
    pub fn own_option(mut self, field: &str, value: impl Into<Value>) -> Self {
        let own = self.config.entry("rubelet").or_insert_with(|| json!({}));
        own[field] = value.into();
        self
    }

    /// Adds a flag, such as `--node-ip=127.0.0.1`.
    pub fn flag(mut self, flag: impl Into<OsString>) -> Self {
        self.flags.push(flag.into());
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Requests watchdog messages, as systemd does for a unit with `WatchdogSec`.
    pub fn watchdog(self, period: Duration) -> Self {
        self.env("WATCHDOG_USEC", period.as_micros().to_string())
    }

    /// Uses another runtime endpoint, such as a proxy in front of the runtime.
    pub fn endpoint(mut self, endpoint: impl Into<String>) -> Self {
        self.runtime_flags = endpoint_flags(&endpoint.into());
        self
    }

    /// Sets another node name than `testnode`; static pods have it as a suffix.
    pub fn node_name(mut self, name: impl Into<String>) -> Self {
        self.node_name = name.into();
        self
    }

    /// Runs this program instead of the one that [`binary`] finds.
    pub fn program(mut self, path: impl Into<PathBuf>) -> Self {
        self.program = Some(path.into());
        self
    }

    /// Starts the agent with this soft limit of open files.
    ///
    /// # Errors
    /// When there is no program to test, or a file can't be written.
    pub fn started_with_open_files(mut self, soft: u32) -> Result<Self> {
        let program = self.program.take().map_or_else(binary, Ok)?;
        let path = self.scratch.dir().join("limited");
        let text = format!(
            "#!/bin/sh\nulimit -Sn {soft}\nexec '{}' \"$@\"\n",
            program.display()
        );
        std::fs::write(&path, text)?;
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755))?;
        Ok(self.program(path))
    }

    /// Writes a manifest into the directory before the agent is started.
    pub fn manifest(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.manifests.push((name.into(), text.into()));
        self
    }

    /// Creates the directories and files, and starts the agent. Does not wait for readiness.
    ///
    /// # Errors
    /// When there is no program to test, or it can't be started.
    pub fn start(self) -> Result<Agent> {
        let mut agent = self.prepare()?;
        agent.start()?;
        Ok(agent)
    }

    /// Creates the directories and files without starting the agent.
    ///
    /// # Errors
    /// When there is no program to test, or a file can't be written.
    pub fn prepare(self) -> Result<Agent> {
        let dir = free_dir(&self.scratch)?;
        for name in [MANIFESTS, ROOT, POD_LOGS, STAGING] {
            std::fs::create_dir_all(dir.join(name))?;
        }
        for (name, text) in &self.manifests {
            write_manifest(&dir, name, text)?;
        }
        // The kubelet requires its root cgroup to exist.
        cgroups::create(self.scratch.tag())?;
        let healthz_port = free_port(Ipv4Addr::LOCALHOST.into())?;
        let config = self.whole_config(&dir, healthz_port, CgroupDriver::wanted()?);
        let config = serde_json::to_string_pretty(&config)?;
        std::fs::write(dir.join(CONFIG), config)?;
        let notify = dir.join(NOTIFY_SOCKET);
        let receiver = Receiver::bind(&notify)?;
        let mut environment = self.environment;
        environment.push(("NOTIFY_SOCKET".into(), notify.into()));
        let mut arguments = arguments(&dir, &self.node_name);
        arguments.extend(self.runtime_flags);
        arguments.extend(self.flags);
        let process = Process {
            scratch: self.scratch.clone(),
            program: self.program.map_or_else(binary, Ok)?,
            arguments,
            environment,
            log: dir.join(LOG),
            child: None,
            started_at: None,
            boot_id: None,
        };
        Ok(Agent {
            scratch: self.scratch,
            dir,
            node_name: self.node_name,
            healthz_port,
            runtime_log: self.runtime_log,
            receiver,
            process,
        })
    }

    fn whole_config(&self, dir: &Path, healthz_port: u16, driver: CgroupDriver) -> Value {
        let mut config = json!({
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "podLogsDir": dir.join(POD_LOGS),
            "healthzPort": healthz_port,
            "cgroupRoot": self.scratch.cgroup_root(),
            "cgroupDriver": driver.name(),
            "failCgroupV1": false,
            // It would stay on this machine.
            "makeIPTablesUtilChains": false,
            // Images, dead containers and pods of tests stay even if this machine's disk is full.
            "imageGCHighThresholdPercent": 100,
            "evictionHard": { "memory.available": "1Mi" },
            "rubelet": {
                "socket": dir.join(API_SOCKET),
                "secretsKeyFile": dir.join(SECRETS_KEY),
            },
        });
        for (field, value) in &self.config {
            match (config.get_mut(field), value) {
                // Own options are merged with the existing ones instead of replacing them.
                (Some(Value::Object(there)), Value::Object(more)) => there.extend(more.clone()),
                _ => config[field] = value.clone(),
            }
        }
        config
    }
}

/// The flags of an agent with a runtime at `endpoint`.
pub(crate) fn endpoint_flags(endpoint: &str) -> Vec<OsString> {
    vec!["--container-runtime-endpoint".into(), endpoint.into()]
}

fn arguments(dir: &Path, node_name: &str) -> Vec<OsString> {
    let flags: [(&str, OsString); 4] = [
        ("--config", dir.join(CONFIG).into()),
        ("--pod-manifest-path", dir.join(MANIFESTS).into()),
        ("--root-dir", dir.join(ROOT).into()),
        ("--hostname-override", node_name.into()),
    ];
    let mut arguments: Vec<OsString> = vec!["run".into()];
    arguments.extend(
        flags
            .into_iter()
            .flat_map(|(name, value)| [name.into(), value]),
    );
    arguments
}

/// Writes a manifest beside the directory and moves it in, so that it is never visible
/// incompletely.
pub(super) fn write_manifest(dir: &Path, name: &str, text: &str) -> Result<()> {
    let staged = dir.join(STAGING).join(name);
    std::fs::write(&staged, text).with_context(|| format!("cannot write {}", staged.display()))?;
    let path = dir.join(MANIFESTS).join(name);
    std::fs::rename(&staged, &path).with_context(|| format!("cannot create {}", path.display()))
}

/// A new directory for one more agent of the instance.
fn free_dir(scratch: &Scratch) -> Result<PathBuf> {
    for number in 1_u32.. {
        let dir = scratch.dir().join(format!("a{number}"));
        match std::fs::create_dir(&dir) {
            Ok(()) => return Ok(dir),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(error).with_context(|| format!("cannot create {}", dir.display()));
            }
        }
    }
    unreachable!("some number is free")
}
