//! Runs a lifecycle hook of a container (kubelet: `lifecycle/handlers.go`).

use std::{sync::Arc, time::Duration};

use rubelet_api::{
    pod::Pod,
    probe::{Hook, HttpGet, TargetPort, TcpSocket},
};
use rubelet_base::{ContainerId, ErrorChain, event_reason};
use rubelet_cri::v1;
use rubelet_node_state::events::EventType;
use rubelet_pod_plan::{ObservedPod, pod_ips::in_family_order};
use rubelet_probes::ProbeOutcome;
use tokio::time::sleep;

use super::{LOCAL, PodContext, PodTask};

/// Maximum number of bytes of a command's output that are reported, for each of its two streams.
const MAX_OUTPUT: usize = 4096;

/// Hooks have no timeout of their own (kubelet: none); the caller bounds the wait.
const NO_LIMIT: Duration = Duration::from_secs(60 * 60 * 24 * 365);

/// A failed hook, with the kubelet's messages.
#[derive(Debug, thiserror::Error)]
pub(super) enum HookError {
    /// The command failed.
    #[error(
        "Exec lifecycle hook ([{command}]) for {of} failed - error: {error}, message: {output:?}"
    )]
    Exec {
        command: String,
        of: String,
        error: String,
        output: String,
    },
    /// The request failed.
    #[error("HTTP lifecycle hook ({path}) for {of} failed - error: {error}")]
    Http {
        path: Box<str>,
        of: String,
        error: String,
    },
    /// The hook is a `tcpSocket`, which the API accepts and the kubelet refuses to run.
    #[error("Cannot run handler: invalid handler: {0}")]
    Tcp(String),
}

impl PodTask {
    /// The runner for hooks of this version of the pod.
    pub(super) fn hook_runner(&self) -> HookRunner {
        HookRunner {
            context: Arc::clone(&self.context),
            pod: Arc::clone(&self.pod),
            observed: Arc::clone(&self.observed),
        }
    }
}

/// Runs hooks of a pod's containers. It owns what it needs, so that a hook can run beside the pod's
/// task.
pub(super) struct HookRunner {
    context: Arc<PodContext>,
    pod: Arc<Pod>,
    observed: Arc<ObservedPod>,
}

impl HookRunner {
    /// Runs a hook to its end. If the future is dropped before, a command is killed and a request
    /// is closed.
    ///
    /// # Errors
    /// The hook failed, or cannot be run.
    pub(super) async fn run(
        &self,
        container: &str,
        id: &ContainerId,
        hook: &Hook,
    ) -> Result<(), HookError> {
        let (name, uid) = (&self.pod.name, &self.pod.uid);
        let of = format!(
            "Container {container:?} in Pod \"{}_{}({uid})\"",
            name.name, name.namespace
        );
        match hook {
            Hook::Exec(command) => {
                self.run_command(id, command)
                    .await
                    .map_err(|failed| HookError::Exec {
                        command: command.join(" "),
                        of,
                        error: failed.error,
                        output: failed.output,
                    })
            }
            Hook::Http(get) => {
                self.request(container, id, get)
                    .await
                    .map_err(|error| HookError::Http {
                        path: get.path.clone(),
                        of,
                        error,
                    })
            }
            Hook::Sleep(time) => {
                let sleeping = self.context.metrics.hooks.sleeping();
                sleep(*time).await;
                sleeping.done();
                Ok(())
            }
            Hook::Tcp(socket) => Err(HookError::Tcp(tcp_handler(socket))),
        }
    }

    async fn run_command(
        &self,
        id: &ContainerId,
        command: &[Box<str>],
    ) -> Result<(), FailedCommand> {
        let request = v1::ExecSyncRequest {
            container_id: id.as_str().to_owned(),
            cmd: command.iter().map(ToString::to_string).collect(),
            // None, as with the kubelet. The runtime kills the command when the call is dropped.
            timeout: 0,
        };
        match self.context.runtime.exec_sync(request).await {
            Ok(answer) if answer.exit_code == 0 => Ok(()),
            Ok(answer) => {
                let (stdout, stderr) = (text(&answer.stdout), text(&answer.stderr));
                Err(FailedCommand {
                    error: format!(
                        "command '{}' exited with {}: {stderr}",
                        command.join(" "),
                        answer.exit_code
                    ),
                    output: stdout + &stderr,
                })
            }
            Err(error) => Err(FailedCommand {
                error: ErrorChain(&error).to_string(),
                output: String::new(),
            }),
        }
    }

    async fn request(
        &self,
        container: &str,
        id: &ContainerId,
        get: &HttpGet,
    ) -> Result<(), String> {
        let host = match &get.host {
            Some(host) => host.clone(),
            None => self
                .address_of(id)
                .ok_or("failed to find networking container")?,
        };
        let report = self.context.net.hook(get, &host, NO_LIMIT).await;
        match report.verdict {
            ProbeOutcome::Passed => Ok(()),
            ProbeOutcome::Warned => {
                self.context.metrics.hooks.fell_back();
                let (kind, reason) = (EventType::Warning, event_reason::LIFECYCLE_HTTP_FALLBACK);
                self.event(container, kind, reason, &report.output);
                Ok(())
            }
            ProbeOutcome::Failed | ProbeOutcome::TimedOut | ProbeOutcome::Errored => {
                Err(report.output)
            }
        }
    }

    /// Records an event about one of the pod's containers.
    pub(super) fn event(&self, container: &str, kind: EventType, reason: &str, message: &str) {
        let recorder = &self.context.recorder;
        recorder.pod(&self.pod, Some(container), kind, reason, message);
    }

    /// The pod.
    pub(super) fn pod(&self) -> &Pod {
        &self.pod
    }

    /// The primary address of the sandbox that a container is in, or of the node.
    fn address_of(&self, id: &ContainerId) -> Option<Box<str>> {
        if self.pod.spec.host_network {
            let ips = self.context.node_ips.texts();
            return Some(ips.into_iter().next().unwrap_or_else(|| LOCAL.into()));
        }
        let observed = &self.observed;
        let container = observed.containers.iter().find(|found| found.id == *id);
        let sandbox = match container {
            Some(found) => {
                let mut all = observed.sandboxes.iter();
                all.find(|sandbox| sandbox.id == found.sandbox)
            }
            // It was created after the last observation.
            None => observed.ready_sandbox(),
        };
        let node_ips = self.context.node_ips.texts();
        in_family_order(&sandbox?.ips, &node_ips).into_iter().next()
    }
}

struct FailedCommand {
    error: String,
    output: String,
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_OUTPUT)]).into_owned()
}

/// The handler as the kubelet prints it.
fn tcp_handler(socket: &TcpSocket) -> String {
    let port = match &socket.port {
        TargetPort::Number(number) => format!("{{0 {number} }}"),
        TargetPort::Unknown(name) => format!("{{1 0 {name}}}"),
    };
    let host = socket.host.as_deref().unwrap_or_default();
    format!(
        "&LifecycleHandler{{Exec:nil,HTTPGet:nil,\
         TCPSocket:&TCPSocketAction{{Port:{port},Host:{host},}},Sleep:nil,}}"
    )
}
