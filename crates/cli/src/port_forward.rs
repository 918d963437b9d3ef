//! `rubelet port-forward`: ports of a pod on this machine.

mod connection;
mod listen;
mod ports;

use std::{convert::Infallible, sync::Arc, time::Duration};

use anyhow::anyhow;
use rubelet_streaming::{PortDialer, SessionKind, client};
use serde_json::Value;
use tokio::{net::TcpStream, sync::mpsc, task::JoinSet, time::timeout};

use self::{
    connection::{CloseNotifier, forward},
    listen::{Addresses, Forward},
};
use super::{
    agent::{Agent, collection},
    failure::CommandError,
    pod_watch,
    session::check_phase,
    target::{NamespaceArgs, find, name_of, parse_pod, pod_path},
    terminal::Terminal,
};

/// Delay after a failed accept.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Time for a pod to be seen as ended after the agent has closed the session with it.
const POD_ENDS: Duration = Duration::from_secs(2);

/// Forwards local ports to a pod
#[derive(Debug, Clone, clap::Args)]
#[command(
    long_about = "Forwards local ports to ports of a pod, until Ctrl-C or until the pod is gone. \
                  All connections go through one to the agent.",
    after_help = "\
Examples:
  rubelet port-forward web 8080
  rubelet port-forward pod/web 8080:80 5432
  rubelet port-forward web :http
  rubelet port-forward web 8080:80 --address 0.0.0.0"
)]
pub(crate) struct PortForwardArgs {
    /// Pod: NAME, pod/NAME, or a unique prefix of its name
    pod: String,
    /// Ports: REMOTE, LOCAL:REMOTE, or :REMOTE for a free local one; REMOTE may be a name
    #[arg(value_name = "[LOCAL:]REMOTE", required = true)]
    ports: Vec<String>,
    /// Addresses to listen on; localhost is 127.0.0.1 and ::1
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "localhost",
        value_delimiter = ','
    )]
    address: Vec<String>,
    #[command(flatten)]
    namespace: NamespaceArgs,
}

pub(super) async fn run(
    agent: &Agent,
    args: &PortForwardArgs,
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
    let addresses = Addresses::parse(&args.address)?;
    let (wanted, namespace) = (parse_pod(&args.pod)?, args.namespace.namespace());
    let pods = agent
        .list(&collection(rubelet_server::Resource::Pods, namespace))
        .await?;
    let pod = find(
        agent,
        rubelet_server::Resource::Pods,
        &pods,
        wanted,
        namespace,
    )
    .await?;
    check_phase(&pod, "forward ports of")?;
    let ports = args.ports.iter().map(|word| ports::resolve(word, &pod));
    let ports = ports.collect::<Result<Vec<_>, _>>()?;

    let headers = client::upgrade_headers(SessionKind::PortForward);
    let (io, _) = agent
        .upgrade(&pod_path(&pod, "portforward"), headers)
        .await?;
    let (io, mut closed) = CloseNotifier::new(io);
    let dialer = client::ports(io);
    let mut forwards = Vec::new();
    for port in ports {
        match addresses.listen(port).await {
            Ok(mut listening) => forwards.append(&mut listening),
            Err(failures) => terminal.note(&format!(
                "Unable to listen on port {}: {}",
                port.local,
                failures.join(", ")
            )),
        }
    }
    if forwards.is_empty() {
        return Err(anyhow!("unable to listen on any of the requested ports").into());
    }
    for Forward {
        address, remote, ..
    } in &forwards
    {
        terminal.print(format!("Forwarding from {address} -> {remote}\n"))?;
    }
    let (accepted, connections) = mpsc::channel(16);
    let mut listeners = JoinSet::new();
    for forward in forwards {
        listeners.spawn(accept(forward, accepted.clone()));
    }
    drop(accepted);
    // Connections end with the command.
    tokio::select! {
        failed = serve(connections, dialer, terminal) => match failed? {},
        gone = pod_gone(agent, &pod) => Err(anyhow!("{}", gone?).into()),
        _ = closed.wait_for(|closed| *closed) => {
            let name = name_of(&pod);
            // The session ends with the sandbox, a moment before the pod.
            let why = match timeout(POD_ENDS, pod_gone(agent, &pod)).await {
                Ok(Ok(why)) => why,
                _ => format!("lost connection to pod {name}: the agent closed the session"),
            };
            Err(anyhow!("{why}").into())
        }
        interrupted = tokio::signal::ctrl_c() => Ok(interrupted?),
    }
}

/// Waits until the pod terminates; returns the message about it.
async fn pod_gone(agent: &Agent, pod: &Value) -> Result<String, CommandError> {
    let name = name_of(pod);
    pod_watch::until(agent, pod, |pod| {
        let Some(pod) = pod else {
            return Some(format!("lost connection to pod {name}: it is gone"));
        };
        match pod["status"]["phase"].as_str() {
            Some(phase @ ("Succeeded" | "Failed")) => Some(format!(
                "lost connection to pod {name}: it has ended, its phase is {phase}"
            )),
            _ => None,
        }
    })
    .await
}

/// An accepted connection, with the two ports.
type Accepted = (TcpStream, u16, u16);

async fn accept(forward: Forward, accepted: mpsc::Sender<Accepted>) {
    let (local, remote) = (forward.address.port(), forward.remote);
    loop {
        match forward.listener.accept().await {
            Ok((stream, _)) => {
                if accepted.send((stream, local, remote)).await.is_err() {
                    return;
                }
            }
            // Such as EMFILE: descriptors may be freed soon.
            Err(_) => tokio::time::sleep(ACCEPT_AGAIN).await,
        }
    }
}

/// Serves connections forever. One that fails does not end the others.
async fn serve(
    mut connections: mpsc::Receiver<Accepted>,
    dialer: Arc<dyn PortDialer>,
    terminal: &mut Terminal<'_>,
) -> Result<Infallible, CommandError> {
    let mut running = JoinSet::new();
    loop {
        // Cancel safe: the result of a branch is handled before the next iteration.
        tokio::select! {
            Some((stream, local, remote)) = connections.recv() => {
                terminal.print(format!("Handling connection for {local}\n"))?;
                let dialer = Arc::clone(&dialer);
                running.spawn(async move {
                    let ended = forward(stream, remote, dialer).await;
                    ended.map_err(|error| format!("forwarding {local} -> {remote}: {error:#}"))
                });
            }
            Some(ended) = running.join_next() => match ended {
                Ok(Ok(())) => {}
                Ok(Err(message)) => terminal.error(&message),
                Err(panicked) => terminal.error(&panicked.to_string()),
            },
            else => std::future::pending::<()>().await,
        }
    }
}
