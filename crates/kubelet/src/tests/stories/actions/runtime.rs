//! Commands for the runtime, its sandboxes and images, the host and the network.

use rubelet_cri::{Code, CriErrorKind, RuntimeService, v1};
use rubelet_sim::{Fault, Pull, Subject};

use super::required;
use crate::tests::{net::NetResponse, stories::director::Director};

impl Director {
    pub(super) async fn sandbox(&mut self, words: &[&str]) -> Result<bool, String> {
        let (words, pod) = match words {
            [words @ .., "of", pod] => (words, (*pod).to_owned()),
            words => (words, self.main_pod()),
        };
        let uid = self.uid(&pod)?;
        let sandboxes = self.node.sim.sandboxes(&uid);
        let newest = sandboxes.last().ok_or("there is no sandbox")?;
        let sim = &self.node.sim;
        match words {
            ["sandbox", "dies"] => sim.kill_sandbox(newest),
            ["sandbox", "vanishes"] => sim.remove_sandbox_externally(newest),
            ["sandbox", "loses", "its", "address"] => self.node.wire.hide_addresses(true),
            ["sandbox", "has", "its", "address", "again"] => self.node.wire.hide_addresses(false),
            ["another", "sandbox", "appears"] => {
                let mut config = sim.sandbox_config(newest).unwrap_or_default();
                if let Some(metadata) = &mut config.metadata {
                    metadata.attempt += 1;
                }
                let request = v1::RunPodSandboxRequest {
                    config: Some(config),
                    runtime_handler: String::new(),
                };
                let made = RuntimeService::run_pod_sandbox(sim, request).await;
                made.map_err(|error| error.to_string())?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    pub(super) fn image(&mut self, words: &[&str], tail: &str) -> Result<bool, String> {
        let sim = &self.node.sim;
        match words {
            ["image", name, "can't", "be", "pulled"] => sim.on_pull(name, Pull::fails(tail)),
            ["image", name, "can", "be", "pulled"] => sim.on_pull(name, Pull::succeeds()),
            ["image", name, "is", "there"] => {
                sim.add_image(name);
            }
            ["pull", "of", name, "takes", time] => {
                sim.on_pull(name, Pull::succeeds().taking(required(time)?));
            }
            ["pull", "of", name, "hangs"] => sim.on_pull(name, Pull::hangs()),
            _ => return Ok(false),
        }
        Ok(true)
    }

    pub(super) fn runtime(&mut self, words: &[&str], tail: &str) -> Result<bool, String> {
        let sim = self.node.sim.clone();
        match words {
            ["runtime", "goes", "down"] => sim.set_down(true),
            ["runtime", "comes", "back"] => sim.set_down(false),
            ["runtime", "restarts"] => sim.restart(),
            ["runtime", "has", "no", "network"] => sim.set_ready(true, false),
            ["runtime", "has", "a", "network"] => sim.set_ready(true, true),
            ["runtime", "loses", "track", "of", name] => self.track(name, true)?,
            ["runtime", "finds", name, "again"] => self.track(name, false)?,
            ["runtime", "tells", reason, "of", name] => {
                let (uid, container) = self.container(name)?;
                let found = self.newest(&uid, &container)?;
                self.node.wire.change_reason(&found, reason);
            }
            ["runtime", "hangs", "in", call, rest @ ..] => {
                let (subject, after) = match rest {
                    [rest @ .., "after", "its", "effect"] => (self.subject(rest)?, true),
                    rest => (self.subject(rest)?, false),
                };
                self.hangs.push(if after {
                    sim.hang_after_effect(call, subject)
                } else {
                    sim.hang(call, subject)
                });
            }
            ["runtime", "goes", "on"] => self.hangs.clear(),
            ["runtime", "finishes", "abandoned", "calls"] => {
                self.node.wire.finish_abandoned_calls();
            }
            ["runtime", "fails", call, rest @ ..] => {
                let (fault, rest) = match rest {
                    ["once", rest @ ..] => (Fault::of(call).times(1), rest),
                    ["twice", rest @ ..] => (Fault::of(call).times(2), rest),
                    rest => (Fault::of(call).always(), rest),
                };
                let kind = CriErrorKind::Other(Code::Unknown);
                sim.inject(fault.on(self.subject(rest)?).error(kind, tail));
            }
            ["runtime", "works", "again"] => sim.clear_faults(),
            ["runtime", "takes", time, "for", call] => sim.set_latency_of(call, required(time)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The subject of a call: anything, or `of CONTAINER`.
    fn subject(&self, words: &[&str]) -> Result<Subject, String> {
        match words {
            [] => Ok(Subject::any()),
            // A hang can be set up before the pod exists.
            ["of", name] => Ok(Subject {
                container: Some((*name).to_owned()),
                ..Subject::any()
            }),
            _ => Err(format!("not `of CONTAINER`: {}", words.join(" "))),
        }
    }

    fn track(&self, name: &str, lost: bool) -> Result<(), String> {
        let (uid, container) = self.container(name)?;
        let found = self.newest(&uid, &container)?;
        self.node.wire.lose_track(&found, lost);
        Ok(())
    }

    /// The newest instance of a container.
    fn newest(&self, uid: &str, name: &str) -> Result<String, String> {
        let mut all = self.node.containers(uid).into_iter().rev();
        let found = all.find(|found| found.name == name);
        found
            .map(|found| found.id)
            .ok_or_else(|| format!("no such container: {name}"))
    }

    pub(super) fn host(&mut self, words: &[&str], tail: &str) -> Result<bool, String> {
        let name = self.manifest(&self.main_pod())?.name.clone();
        match words {
            ["host", "can't", "prepare", "the", "pod"] => {
                self.node.host.fail_prepare(&name, Some(tail));
            }
            ["host", "can", "prepare", "the", "pod"] => self.node.host.fail_prepare(&name, None),
            ["host", "can't", "clean", "up"] => self.node.host.fail_clean_up(&name, Some(tail)),
            ["host", "can", "clean", "up"] => self.node.host.fail_clean_up(&name, None),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Sets the response to probes and hooks over the network.
    pub(super) fn network(&self, words: &[&str], tail: &str) -> bool {
        let answer = match words {
            ["network", "answers"] => NetResponse::passes(),
            ["network", "fails"] => NetResponse::fails(tail),
            ["network", "hangs"] => NetResponse::hangs(),
            _ => return false,
        };
        self.node.net.on(move |_| answer.clone());
        true
    }
}
