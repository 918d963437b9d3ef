//! Sessions with the process of a container: exec and attach.

mod exit;
mod raw;
mod run;
#[cfg(test)]
mod tests;

use rubelet_streaming::{SessionKind, StdStreams, client};
use serde_json::Value;

use self::raw::{RawTerminal, is_terminal};
use super::{
    agent::Agent,
    failure::CommandError,
    signals::EndSignals,
    target::{name_of, pod_path},
    terminal::Terminal,
    url::Url,
};

/// What the user wants to have of the process.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct StreamArgs {
    /// Pass stdin to the container
    #[arg(short = 'i', long)]
    pub(super) stdin: bool,
    /// Stdin is a terminal
    #[arg(short, long)]
    pub(super) tty: bool,
    /// Only print output of the session
    #[arg(short, long)]
    pub(super) quiet: bool,
}

/// A requested session.
pub(super) struct Session<'a> {
    pub(super) kind: SessionKind,
    pub(super) pod: &'a Value,
    pub(super) container: &'a str,
    /// The command of an exec session.
    pub(super) command: &'a [String],
    pub(super) args: StreamArgs,
}

impl Session<'_> {
    /// Runs the session until it ends; the terminal is restored then.
    pub(super) async fn run(
        &self,
        agent: &Agent,
        terminal: &mut Terminal<'_>,
    ) -> Result<(), CommandError> {
        let streams = self.streams(terminal)?;
        let headers = client::upgrade_headers(self.kind);
        let (io, answer) = agent.upgrade(&self.url(streams), headers).await?;
        let process = client::process(io, &answer, streams).await;
        let process = process.map_err(|error| exit::broken(&error))?;
        if self.kind == SessionKind::Attach && !self.args.quiet {
            terminal.note("If you don't see a command prompt, try pressing enter.");
        }
        let local = terminal.streams()?;
        let raw = streams.tty && streams.stdin && is_terminal(&local.stdin);
        let mut raw = match raw {
            // In this order: a signal in between would leave the terminal in raw mode.
            true => Some(EndSignals::catch()?)
                .map(|signals| Ok::<_, CommandError>((RawTerminal::enter(&local.stdin)?, signals)))
                .transpose()?,
            false => None,
        };
        let redraw = self.kind == SessionKind::Attach;
        let ended = run::run(process, local, &mut raw, redraw).await;
        // Messages about the end need a terminal that is no longer in raw mode.
        drop(raw);
        exit::judge(ended?, terminal)
    }

    /// The streams of the session. A TTY needs a terminal on this side, and one of the container.
    fn streams(&self, terminal: &mut Terminal<'_>) -> Result<StdStreams, CommandError> {
        let StreamArgs { stdin, tty, quiet } = self.args;
        let (mut tty, mut raw) = (tty, stdin && tty);
        let attach = self.kind == SessionKind::Attach;
        if attach {
            let defined = super::containers::definition(self.pod, self.container);
            let has = defined.is_some_and(|container| container["tty"] == true);
            if tty && !has && !quiet {
                terminal.note(&format!(
                    "error: Unable to use a TTY - container {} did not allocate one",
                    self.container
                ));
            }
            (tty, raw) = (has, stdin && has);
        }
        if raw && !is_terminal(&terminal.streams()?.stdin) {
            raw = false;
            if self.args.tty && !quiet {
                terminal.note(
                    "Unable to use a TTY - input is not a terminal or the right kind of file",
                );
            }
        }
        // An attachment has the streams that the container has.
        let tty = if attach { tty } else { raw };
        Ok(StdStreams {
            stdin,
            stdout: true,
            stderr: !tty,
            tty,
        })
    }

    fn url(&self, streams: StdStreams) -> Url {
        let part = match self.kind {
            SessionKind::Exec => "exec",
            SessionKind::Attach => "attach",
            SessionKind::PortForward => "portforward",
        };
        let flag = |set: bool| set.then_some("true");
        let mut url = pod_path(self.pod, part).with("container", self.container);
        for word in self.command {
            url = url.with("command", word);
        }
        url.maybe("stdin", flag(streams.stdin))
            .maybe("stdout", flag(streams.stdout))
            .maybe("stderr", flag(streams.stderr))
            .maybe("tty", flag(streams.tty))
    }
}

/// Rejects a pod whose containers have all terminated.
pub(super) fn check_phase(pod: &Value, what: &str) -> Result<(), CommandError> {
    match pod["status"]["phase"].as_str() {
        Some(phase @ ("Succeeded" | "Failed")) => Err(anyhow::anyhow!(
            "cannot {what} a container in a completed pod; the phase of pod {} is {phase}",
            name_of(pod)
        )
        .into()),
        _ => Ok(()),
    }
}
