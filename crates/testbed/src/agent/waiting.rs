//! Waits for an agent, and the report if a wait fails.

use std::time::Duration;

use anyhow::{Error, Result, anyhow, bail};
use serde_json::Value;

use super::{Agent, Notification};
use crate::{clock, report, wait};

/// How often a wait for messages to systemd checks whether the agent still runs.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

impl Agent {
    /// Waits until the agent has sent systemd a message that satisfies `wanted`, since its last
    /// start; returns it.
    ///
    /// # Errors
    /// It takes longer than `timeout` or the agent exits by itself; the error has the report.
    pub fn wait_notification(
        &self,
        what: &str,
        timeout: Duration,
        wanted: impl Fn(&Notification) -> bool,
    ) -> Result<Notification> {
        let deadline = clock::now() + wait::patiently(timeout);
        loop {
            let left = deadline.saturating_duration_since(clock::now());
            if let Some(told) = self.receiver.wait(left.min(POLL_INTERVAL), &wanted) {
                return Ok(told);
            }
            if self.process.has_ended() {
                return Err(self.explained(&anyhow!("the agent exited before {what}")));
            }
            if left.is_zero() {
                return Err(
                    self.explained(&anyhow!("timed out after {timeout:?} waiting until {what}"))
                );
            }
        }
    }

    /// Waits until the agent's status text for systemd satisfies `wanted`; returns that text.
    ///
    /// # Errors
    /// It takes longer than `timeout` or the agent exits by itself; the error has the report.
    pub fn wait_status(&self, timeout: Duration, wanted: impl Fn(&str) -> bool) -> Result<String> {
        let is_wanted = |told: &Notification| told.status().is_some_and(&wanted);
        let told =
            self.wait_notification("the status text meets the condition", timeout, is_wanted)?;
        Ok(told.status().unwrap_or_default().to_owned())
    }

    /// Waits until the agent has notified systemd that it is ready.
    ///
    /// # Errors
    /// It takes longer than `timeout` or the agent exits by itself; the error has the report.
    pub fn wait_ready(&self, timeout: Duration) -> Result<()> {
        self.wait_notification("the agent is ready", timeout, Notification::is_ready)
            .map(drop)
    }

    /// Polls `probe` until it returns a value. An error of `probe` does not end the wait, but is
    /// part of the message on a timeout.
    ///
    /// # Errors
    /// It takes longer than `timeout` or the agent exits by itself; the error has the report.
    pub fn wait_for<T>(
        &self,
        what: &str,
        timeout: Duration,
        mut probe: impl FnMut(&Self) -> Result<Option<T>>,
    ) -> Result<T> {
        let mut last_error = None;
        let waited = wait::until(what, timeout, || match probe(self) {
            Ok(None) if self.process.has_ended() => bail!("the agent exited before {what}"),
            Ok(value) => Ok(value),
            Err(error) if self.process.has_ended() => {
                Err(error.context(format!("the agent exited before {what}")))
            }
            Err(error) => {
                last_error = Some(error);
                Ok(None)
            }
        });
        waited.map_err(|error| match last_error {
            Some(last) => self.explained(&anyhow!("{error:#}; the last look failed: {last:#}")),
            None => self.explained(&error),
        })
    }

    /// The error followed by the report.
    pub(super) fn explained(&self, error: &Error) -> Error {
        anyhow!("{error:#}\n{}", self.circumstances())
    }

    /// The report for a failed test: pods, messages to systemd, the ends of the agent's and the
    /// runtime's logs.
    #[must_use]
    pub fn circumstances(&self) -> String {
        let pods = match self.pods() {
            Ok(pods) => pods.iter().map(pod_line).collect::<Vec<_>>().join("\n"),
            Err(error) => format!("{error:#}"),
        };
        let told: Vec<String> = self
            .notifications()
            .iter()
            .map(ToString::to_string)
            .collect();
        let told = told[told.len().saturating_sub(5)..].join("\n");
        let runtime = self.runtime_log.as_ref().map_or_else(String::new, |log| {
            format!("\n--- end of the runtime's log\n{}", report::tail(log, 15))
        });
        format!(
            "--- pods\n{pods}\n--- told systemd\n{told}\n--- end of the agent's log\n{}{runtime}",
            report::tail(&self.log_path(), 40),
        )
    }
}

fn pod_line(pod: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let statuses = pod["status"]["containerStatuses"].as_array();
    let containers: Vec<String> = statuses
        .into_iter()
        .flatten()
        .map(|one| {
            format!(
                "{} {} restarts={}",
                text(&one["name"]),
                one["state"],
                one["restartCount"]
            )
        })
        .collect();
    format!(
        "{} {} {}",
        text(&pod["metadata"]["name"]),
        text(&pod["status"]["phase"]),
        containers.join("; ")
    )
}
