//! Runs one plugin: arguments in its environment, configuration on its standard input, answer on its
//! standard output.

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

/// The longest answer, in bytes. What is behind is read and thrown away.
const LONGEST_ANSWER: usize = 4 << 20;

/// As much of what a plugin complains on its standard error is kept, in bytes.
const LONGEST_COMPLAINT: usize = 8 << 10;

/// As much of each text of a plugin's error is passed on, in bytes: it becomes an event of the pod.
const LONGEST_TEXT: usize = 1 << 10;

/// How long a plugin that ended may have left its answer to something it started.
const LEFTOVER: Duration = Duration::from_secs(1);

/// One run of a plugin.
#[derive(Debug)]
pub(super) struct Run<'a> {
    /// The plugin's type.
    pub(super) kind: &'a str,
    /// Where plugins are.
    pub(super) dirs: &'a [PathBuf],
    /// `CNI_COMMAND`
    pub(super) verb: &'static str,
    /// The variables that depend on the verb.
    pub(super) environment: Vec<(&'static str, OsString)>,
    /// What it is given.
    pub(super) input: &'a Value,
    /// How long it may take.
    pub(super) deadline: Duration,
}

impl Run<'_> {
    /// Runs it; gives what it answered.
    ///
    /// # Errors
    /// A sentence with the plugin's name and its own message.
    pub(super) async fn go(self) -> Result<Vec<u8>, String> {
        let (kind, verb) = (self.kind, self.verb);
        let program = find(kind, self.dirs)?;
        let failed =
            |error: io::Error| format!("cannot run the CNI plugin {}: {error}", program.display());
        let mut command = Command::new(&program);
        command
            .envs(self.environment)
            .env("CNI_COMMAND", verb)
            .env("CNI_PATH", joined(self.dirs))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        limit_as_before(&mut command);
        // Starting a process blocks until it runs.
        let started = tokio::task::spawn_blocking(move || Running::start(&mut command))
            .await
            .map_err(io::Error::other)
            .flatten();
        let mut running = started.map_err(failed)?;
        let input = serde_json::to_vec(self.input).unwrap_or_default();
        let done = timeout(self.deadline, running.talk(&input)).await;
        let Ok(talked) = done else {
            running.kill().await;
            return Err(format!(
                "the CNI plugin {kind} did not answer to {verb} within {} s and was killed",
                self.deadline.as_secs_f32()
            ));
        };
        let Talk { answer, complaint } = talked.map_err(failed)?;
        let status = running.status().map_err(failed)?;
        if status.success() {
            return Ok(answer);
        }
        Err(format!(
            "the CNI plugin {kind} failed to {verb}: {}",
            message(&answer, &complaint, status)
        ))
    }
}

/// Finds a plugin's program.
///
/// # Errors
/// A sentence with the folders that were searched.
pub(super) fn find(kind: &str, dirs: &[PathBuf]) -> Result<PathBuf, String> {
    dirs.iter()
        .map(|dir| dir.join(kind))
        .find(|path| is_program(path))
        .ok_or_else(|| {
            let searched: Vec<String> = dirs.iter().map(|dir| dir.display().to_string()).collect();
            format!(
                "there is no CNI plugin {kind} in {}: install it there",
                searched.join(" or ")
            )
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

/// What a plugin says of its failure: in the form of the specification, or in whatever form.
fn message(answer: &[u8], complaint: &[u8], status: ExitStatus) -> String {
    let error: Option<Value> = serde_json::from_slice(answer).ok();
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
        (Some(code), _) => format!("it ended with {code}"),
        (None, Some(signal)) => format!("signal {signal} ended it"),
        (None, None) => "it ended".to_owned(),
    };
    [text(complaint), text(&answer[..answer.len().min(1024)])]
        .into_iter()
        .find(|text| !text.is_empty())
        .map_or_else(
            || format!("{how} without a message"),
            |text| format!("{how}: {text}"),
        )
}

/// The beginning of a text, without what would steer a terminal.
fn shortened(text: &str) -> String {
    let plain = |character: char| match character {
        '\n' | '\t' => character,
        _ if character.is_control() => '\u{fffd}',
        _ => character,
    };
    match text.char_indices().find(|&(at, _)| at >= LONGEST_TEXT) {
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

/// What a plugin wrote.
struct Talk {
    answer: Vec<u8>,
    complaint: Vec<u8>,
}

/// A plugin that runs. It doesn't outlive this value.
struct Running {
    child: Child,
    pidfd: AsyncFd<OwnedFd>,
    ended: bool,
}

impl Running {
    fn start(command: &mut Command) -> io::Result<Self> {
        let mut child = command.spawn()?;
        let opened = i32::try_from(child.id())
            .ok()
            .and_then(Pid::from_raw)
            .ok_or_else(|| io::Error::other("it has no process number"))
            .and_then(|pid| Ok(pidfd_open(pid, PidfdFlags::NONBLOCK)?))
            .and_then(watched);
        match opened {
            Ok(pidfd) => Ok(Self {
                child,
                pidfd,
                ended: false,
            }),
            Err(error) => {
                // The child is ours and was not waited for: this is no one else's number.
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    /// Writes the input and reads until the plugin ended.
    async fn talk(&mut self, input: &[u8]) -> io::Result<Talk> {
        let closed = || io::Error::other("its pipes are gone");
        let stdin = OwnedFd::from(self.child.stdin.take().ok_or_else(closed)?);
        let stdout = OwnedFd::from(self.child.stdout.take().ok_or_else(closed)?);
        let stderr = OwnedFd::from(self.child.stderr.take().ok_or_else(closed)?);
        let mut to = pipe::Sender::from_owned_fd(stdin)?;
        let mut from = pipe::Receiver::from_owned_fd(stdout)?;
        let mut from_error = pipe::Receiver::from_owned_fd(stderr)?;
        let mut talk = Talk {
            answer: Vec::new(),
            complaint: Vec::new(),
        };
        {
            let write = async move {
                // A plugin needn't read.
                let _ = to.write_all(input).await;
            };
            let pipes = async {
                tokio::join!(
                    write,
                    read(&mut from, &mut talk.answer, LONGEST_ANSWER),
                    read(&mut from_error, &mut talk.complaint, LONGEST_COMPLAINT),
                );
            };
            tokio::pin!(pipes);
            tokio::select! {
                () = &mut pipes => {
                    let _ = self.pidfd.readable().await?;
                }
                end = self.pidfd.readable() => {
                    let _ = end?;
                    let _ = timeout(LEFTOVER, &mut pipes).await;
                }
            }
        }
        self.ended = true;
        Ok(talk)
    }

    /// The end of a plugin that ended.
    fn status(&mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }

    /// Kills it and what it started, and waits until it is gone.
    async fn kill(&mut self) {
        let _ = process_group::kill(self.pidfd.as_fd(), self.child.id());
        if timeout(LEFTOVER, self.pidfd.readable()).await.is_ok() {
            self.ended = true;
            let _ = self.child.wait();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let _ = process_group::kill(self.pidfd.as_fd(), self.child.id());
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        // Something that even a kill doesn't end at once must not hold up a worker.
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
        assert!(told.len() < 2 * LONGEST_TEXT, "{}", told.len());
        assert!(told.ends_with("(\u{fffd}[2J)"), "{told}");
        assert!(message(b"", long.as_bytes(), failed).len() < 2 * LONGEST_TEXT);
        assert_eq!(
            message(b"", b" no such\n", failed),
            "it ended with 1: no such"
        );
    }
}
