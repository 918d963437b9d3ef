//! Runs one plugin: parameters in its environment, configuration on its standard input, result on
//! its standard output.

use std::{
    ffi::OsString,
    fs, io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::{
            fs::PermissionsExt,
            process::{CommandExt, ExitStatusExt},
        },
    },
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use rubelet_host::{open_files::limit_as_before, process_group};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, unix::AsyncFd},
    net::unix::pipe,
    time::timeout,
};

use super::error::PluginError;

/// Maximum size of standard output. The rest is read and discarded.
const MAX_STDOUT: usize = 4 << 20;

/// Maximum size of standard error.
const MAX_STDERR: usize = 8 << 10;

/// Maximum size of each text of a plugin's error that is passed on: it becomes an event of the pod.
const MAX_MESSAGE: usize = 1 << 10;

/// Time to continue reading after a plugin exited, while a child of it still holds its pipes.
const PIPE_TIMEOUT: Duration = Duration::from_secs(1);

/// One call of a plugin.
#[derive(Debug)]
pub(super) struct PluginCall<'a> {
    /// The plugin's type.
    pub(super) kind: &'a str,
    /// The plugin directories.
    pub(super) dirs: &'a [PathBuf],
    /// `CNI_COMMAND`
    pub(super) verb: &'static str,
    /// The environment variables that depend on the verb.
    pub(super) environment: Vec<(&'static str, OsString)>,
    /// The standard input.
    pub(super) input: &'a Value,
    /// The deadline.
    pub(super) deadline: Duration,
}

impl PluginCall<'_> {
    /// Runs the plugin; returns its standard output.
    ///
    /// # Errors
    /// The plugin can't be run, fails, or exceeds its deadline.
    pub(super) async fn execute(self) -> Result<Vec<u8>, PluginError> {
        let (kind, verb) = (self.kind, self.verb);
        let program = find(kind, self.dirs)?;
        let failed = |source: io::Error| PluginError::Run {
            program: program.clone(),
            source,
        };
        let mut command = Command::new(&program);
        command
            .envs(self.environment)
            .env("CNI_COMMAND", verb)
            .env("CNI_PATH", joined(self.dirs))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // So that a kill reaches the programs that the plugin starts.
            .process_group(0);
        limit_as_before(&mut command);
        // `spawn` blocks until the child has executed the program.
        let started = tokio::task::spawn_blocking(move || PluginProcess::start(&mut command))
            .await
            .map_err(io::Error::other)
            .flatten();
        let mut running = started.map_err(failed)?;
        let input = serde_json::to_vec(self.input).unwrap_or_default();
        let done = timeout(self.deadline, running.exchange(&input)).await;
        let Ok(exchanged) = done else {
            running.kill().await;
            return Err(PluginError::Deadline {
                plugin: kind.to_owned(),
                verb,
                deadline: self.deadline,
            });
        };
        let PluginOutput { stdout, stderr } = exchanged.map_err(failed)?;
        let status = running.status().map_err(failed)?;
        if status.success() {
            return Ok(stdout);
        }
        Err(PluginError::Failed {
            plugin: kind.to_owned(),
            verb,
            message: message(&stdout, &stderr, status),
        })
    }
}

/// Finds a plugin's program.
///
/// # Errors
/// No directory has it.
pub(super) fn find(kind: &str, dirs: &[PathBuf]) -> Result<PathBuf, PluginError> {
    dirs.iter()
        .map(|dir| dir.join(kind))
        .find(|path| is_program(path))
        .ok_or_else(|| {
            let searched: Vec<String> = dirs.iter().map(|dir| dir.display().to_string()).collect();
            PluginError::NotFound {
                plugin: kind.to_owned(),
                searched: searched.join(" or "),
            }
        })
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path)
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

fn joined(dirs: &[PathBuf]) -> OsString {
    let mut all = OsString::new();
    for dir in dirs {
        if !all.is_empty() {
            all.push(":");
        }
        all.push(dir);
    }
    all
}

/// A plugin's error message: the JSON error of the specification, or whatever it printed.
fn message(stdout: &[u8], stderr: &[u8], status: ExitStatus) -> String {
    let error: Option<Value> = serde_json::from_slice(stdout).ok();
    let field = |name: &str| {
        error
            .as_ref()
            .and_then(|error| error.get(name)?.as_str())
            .map(|text| shortened(text.trim()))
            .filter(|text| !text.is_empty())
    };
    if let Some(text) = field("msg") {
        return match field("details") {
            Some(details) => format!("{text} ({details})"),
            None => text,
        };
    }
    let text = |bytes: &[u8]| shortened(String::from_utf8_lossy(bytes).trim());
    let how = match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => "exited".to_owned(),
    };
    [text(stderr), text(&stdout[..stdout.len().min(1024)])]
        .into_iter()
        .find(|text| !text.is_empty())
        .map_or_else(
            || format!("{how}, without an error message"),
            |text| format!("{how}: {text}"),
        )
}

/// The beginning of a text, without terminal control characters.
fn shortened(text: &str) -> String {
    let plain = |character: char| match character {
        '\n' | '\t' => character,
        _ if character.is_control() => '\u{fffd}',
        _ => character,
    };
    match text.char_indices().find(|&(at, _)| at >= MAX_MESSAGE) {
        None => text.chars().map(plain).collect(),
        Some((end, _)) => text[..end].chars().map(plain).chain(['…']).collect(),
    }
}

/// Lets the async runtime watch a descriptor.
#[expect(
    deprecated,
    reason = "what takes its place is unsafe for types that swap their descriptor; an OwnedFd doesn't"
)]
fn watched(pidfd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::new(pidfd)
}

/// The output of a plugin.
struct PluginOutput {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

/// A running plugin. Killed on drop.
struct PluginProcess {
    child: Child,
    pidfd: AsyncFd<OwnedFd>,
    ended: bool,
}

impl PluginProcess {
    fn start(command: &mut Command) -> io::Result<Self> {
        let mut child = command.spawn()?;
        let opened = i32::try_from(child.id())
            .ok()
            .and_then(Pid::from_raw)
            .ok_or_else(|| io::Error::other("it has no process ID"))
            .and_then(|pid| Ok(pidfd_open(pid, PidfdFlags::NONBLOCK)?))
            .and_then(watched);
        match opened {
            Ok(pidfd) => Ok(Self {
                child,
                pidfd,
                ended: false,
            }),
            Err(error) => {
                // An unreaped child keeps its PID, so the signal cannot hit another process.
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    /// Writes the input and reads the output until the plugin exits.
    async fn exchange(&mut self, input: &[u8]) -> io::Result<PluginOutput> {
        let closed = || io::Error::other("its pipes are closed");
        let stdin = OwnedFd::from(self.child.stdin.take().ok_or_else(closed)?);
        let stdout = OwnedFd::from(self.child.stdout.take().ok_or_else(closed)?);
        let stderr = OwnedFd::from(self.child.stderr.take().ok_or_else(closed)?);
        let mut to = pipe::Sender::from_owned_fd(stdin)?;
        let mut from = pipe::Receiver::from_owned_fd(stdout)?;
        let mut from_error = pipe::Receiver::from_owned_fd(stderr)?;
        let mut output = PluginOutput {
            stdout: Vec::new(),
            stderr: Vec::new(),
        };
        {
            let write = async move {
                // A plugin need not read its input: EPIPE is ignored.
                let _ = to.write_all(input).await;
            };
            let pipes = async {
                tokio::join!(
                    write,
                    read(&mut from, &mut output.stdout, MAX_STDOUT),
                    read(&mut from_error, &mut output.stderr, MAX_STDERR),
                );
            };
            tokio::pin!(pipes);
            tokio::select! {
                // The plugin has closed its pipes and is about to exit.
                () = &mut pipes => {
                    let _ = self.pidfd.readable().await?;
                }
                end = self.pidfd.readable() => {
                    let _ = end?;
                    let _ = timeout(PIPE_TIMEOUT, &mut pipes).await;
                }
            }
        }
        self.ended = true;
        Ok(output)
    }

    /// The exit status of a plugin that exited.
    fn status(&mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }

    /// Kills its process group and waits for its exit.
    async fn kill(&mut self) {
        let _ = process_group::kill(self.pidfd.as_fd(), self.child.id());
        // A process in uninterruptible sleep outlives SIGKILL: `drop` leaves it to a thread.
        if timeout(PIPE_TIMEOUT, self.pidfd.readable()).await.is_ok() {
            self.ended = true;
            let _ = self.child.wait();
        }
    }
}

impl Drop for PluginProcess {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let _ = process_group::kill(self.pidfd.as_fd(), self.child.id());
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        // A process in uninterruptible sleep does not exit at once; a dedicated thread waits, so
        // that no worker blocks.
        let Some(pidfd) = self.pidfd.as_fd().try_clone_to_owned().ok() else {
            return;
        };
        let _ = std::thread::Builder::new()
            .name("cni-reaper".to_owned())
            .stack_size(64 * 1024)
            .spawn(move || {
                rustix::process::waitid(
                    rustix::process::WaitId::PidFd(pidfd.as_fd()),
                    rustix::process::WaitIdOptions::EXITED,
                )
            });
    }
}

async fn read(from: &mut pipe::Receiver, into: &mut Vec<u8>, most: usize) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let room = most.saturating_sub(into.len());
        into.extend_from_slice(&buffer[..count.min(room)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_plugins_are_short_and_plain() {
        let failed = ExitStatus::from_raw(256);
        let long = "x".repeat(1 << 20);
        let answer = serde_json::json!({ "msg": long, "details": "\u{1b}[2J" }).to_string();
        let told = message(answer.as_bytes(), b"", failed);
        assert!(told.len() < 2 * MAX_MESSAGE, "{}", told.len());
        assert!(told.ends_with("(\u{fffd}[2J)"), "{told}");
        assert!(message(b"", long.as_bytes(), failed).len() < 2 * MAX_MESSAGE);
        assert_eq!(
            message(b"", b" no such\n", failed),
            "exit status 1: no such"
        );
    }
}
