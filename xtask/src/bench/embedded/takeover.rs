//! A host port that passes from one pod to the next.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result};
use rubelet_testbed::agent::free_port;
use rubelet_testbed::manifest::{pod, shell, with};
use rubelet_testbed::{Node, clock, http, wait};
use serde_json::{Value, json};

use super::super::report::Results;
use super::super::{Request, progress, quantile};
use super::environment;

const TAKEOVERS: usize = 30;
const TIMEOUT: Duration = Duration::from_secs(60);
/// Poll interval; short compared to what is measured.
const POLL_INTERVAL: Duration = Duration::from_millis(1);
/// Timeout of one attempt to connect: a packet that is lost in between is sent again after a second.
const CONNECT: Duration = Duration::from_millis(10);
/// The event of a pod that waits for the port.
const WAITS: &str = "HostPortHeld";

/// Measures `hostport_takeover_ms_p50`: pods with the same host port follow each other. Each is
/// applied while its predecessor still holds the port; then the predecessor is removed. The time
/// begins when the runtime shows the old pod's sandbox as stopped, which is right after it released
/// the port, and ends with a response of the new pod through the port.
pub(in super::super) fn measure(request: &Request<'_>, results: &mut Results) -> Result<()> {
    let environment = environment(request)?;
    let port = free_port(Ipv4Addr::LOCALHOST.into())?;
    let node = Node::start_on(environment, |builder| builder.program(&request.program))?;
    progress("pods that take over a port of the host");
    node.apply(&server(0, port))?;
    until_responds(&node, 0, port)?;
    let mut times = Vec::new();
    for new in 1..=TAKEOVERS {
        let old = new - 1;
        node.apply(&server(new, port))?;
        node.wait_event(&name(new), WAITS, &port.to_string())?;
        node.remove(&name(old))?;
        wait::until_every(POLL_INTERVAL, "the old pod is stopped", TIMEOUT, || {
            let sandboxes = node.sandboxes(&name(old))?;
            Ok((!sandboxes.iter().any(|sandbox| sandbox.ready)).then_some(()))
        })?;
        let released = clock::now();
        until_responds(&node, new, port)?;
        times.push(released.elapsed().as_secs_f64() * 1000.0);
    }
    times.sort_by(f64::total_cmp);
    results.add("hostport_takeover_ms_p50", quantile(&times, 0.50));
    Ok(())
}

fn name(number: usize) -> String {
    format!("server-{number}")
}

/// A pod that serves its own name at this host port.
fn server(number: usize, port: u16) -> Value {
    let name = name(number);
    let script = format!("echo {name} > /tmp/index.html; exec httpd -f -h /tmp -p 8080");
    let ports = json!([{ "containerPort": 8080, "hostPort": port }]);
    let main = with(shell("main", &script), &json!({ "ports": ports }));
    pod(&name, &json!({ "containers": [main] }))
}

fn until_responds(node: &Node, number: usize, port: u16) -> Result<()> {
    let (name, address) = (name(number), SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let what = format!("{name} responds at {address}");
    let answers = wait::until_every(POLL_INTERVAL, &what, TIMEOUT, || {
        // The socket has no listener for a while.
        if TcpStream::connect_timeout(&address, CONNECT).is_err() {
            return Ok(None);
        }
        let page = http::get_tcp(&address.to_string(), "/").ok();
        Ok(page.filter(|page| page.text().trim() == name).map(drop))
    });
    answers.with_context(|| node.agent().circumstances())
}
