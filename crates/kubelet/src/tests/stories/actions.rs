//! The commands of a script.

mod requests;
mod runtime;

use std::time::Duration;

use rubelet_sim::Exec;
use tokio::time::advance;

use super::{behavior, director::Director, words::duration};

impl Director {
    /// Executes one command.
    pub(super) async fn perform(&mut self, action: &str) -> Result<(), String> {
        let (head, tail) = action.split_once(": ").unwrap_or((action, ""));
        let words: Vec<&str> = head.split_whitespace().collect();
        let done = match words.as_slice() {
            ["agent", ..] | ["reboot"] => self.agent(&words).await?,
            ["container" | "command", ..] => self.container_does(&words, tail)?,
            ["sandbox", ..] | ["another", "sandbox", ..] => self.sandbox(&words).await?,
            ["image" | "pull", ..] => self.image(&words, tail)?,
            ["edit" | "manifest" | "manifests", ..] => self.manifest_changes(&words, tail)?,
            ["operator", ..] => self.operator(&words, tail).await?,
            ["runtime", ..] => self.runtime(&words, tail)?,
            ["host", ..] => self.host(&words, tail)?,
            ["network", ..] => self.network(&words, tail),
            _ => false,
        };
        if done {
            Ok(())
        } else {
            Err(format!("unknown command: {action}"))
        }
    }

    async fn agent(&mut self, words: &[&str]) -> Result<bool, String> {
        match words {
            ["agent", "dies"] => self.kill().await,
            ["agent", "stops"] => self.stop().await,
            ["agent", "starts"] => self.start(),
            // No task runs during that time: timers fire late.
            ["agent", "is", "starved", "for", time] => advance(required(time)?).await,
            ["agent", "dies", "and", "starts"] => {
                self.kill().await;
                self.start();
            }
            ["reboot"] => {
                self.kill().await;
                for found in self.node.sim.containers() {
                    self.node.sim.kill_container(&found.id, 255, "Unknown");
                }
                for uid in self.uids.values() {
                    for id in self.node.sim.sandboxes(uid) {
                        self.node.sim.kill_sandbox(&id);
                    }
                }
                self.start();
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn container_does(&mut self, words: &[&str], tail: &str) -> Result<bool, String> {
        match words {
            ["container", name, "exits", code] => {
                let code = code
                    .parse()
                    .map_err(|_| format!("invalid exit code: {code}"))?;
                self.end_container(name, code, "")?;
            }
            ["container", name, "runs", "out", "of", "memory"] => {
                self.end_container(name, 137, "OOMKilled")?;
            }
            // The model runtime selects containers by name only.
            ["container", name] => {
                let mut behaviors = behavior::script(tail)?.into_iter();
                let mut now = behaviors.next().unwrap_or_default();
                let mut started = false;
                self.node.sim.on_container_with(name, move |_| {
                    if std::mem::replace(&mut started, true)
                        && let Some(next) = behaviors.next()
                    {
                        now = next;
                    }
                    now.clone()
                });
            }
            ["command", name, rest @ ..] => {
                let mut exec = Exec::default();
                match rest {
                    ["passes"] => {}
                    ["fails"] => exec.exit_code = 1,
                    ["takes", time] => exec.takes = required(time)?,
                    ["fails", "after", time] => {
                        exec.exit_code = 1;
                        exec.takes = required(time)?;
                    }
                    _ => return Ok(false),
                }
                exec.stdout = tail.to_owned();
                let mut commands = self.commands.lock();
                commands.insert((*name).to_owned(), exec);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn end_container(&self, name: &str, code: i32, reason: &str) -> Result<(), String> {
        let (uid, container) = self.container(name)?;
        let running = self.node.sim.running(&uid, &container);
        let id = running.ok_or_else(|| format!("container {name} is not running"))?;
        self.node.sim.kill_container(&id, code, reason);
        Ok(())
    }
}

fn required(text: &str) -> Result<Duration, String> {
    duration(text).ok_or_else(|| format!("invalid duration: {text}"))
}
