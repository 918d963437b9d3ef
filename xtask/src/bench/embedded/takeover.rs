//! A port of the host that goes from one pod to the next.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result};
use rubelet_testbed::manifest::{pod, shell, with};
use rubelet_testbed::{Node, clock, http, wait};
use serde_json::{Value, json};

use super::super::report::Results;
use super::super::{Request, progress, quantile};
use super::environment;

const TAKEOVERS: usize = 30;
const TIMEOUT: Duration = Duration::from_secs(60);
/// Pause between two looks; short beside what is measured.
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// Timeout of one attempt to connect: a packet that is lost in between is sent again after a second.
const CONNECT: Duration = Duration::from_millis(10);
/// The event of a pod that waits for the port.
const WAITS: &str = "HostPortHeld";

/// Measures `hostport_takeover_ms_p50`: pods of one port of the host follow each other, each applied
/// while the one before it still holds the port, and then that one is removed. The time begins when
/// the runtime shows the old pod's sandbox stopped, which is right after it released the port, and
/// ends with an answer of the new pod through the port.
pub(in super::super) fn measure(request: &Request<'_>, results: &mut Results) -> Result<()> {
    let environment = environment(request)?;
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let node = Node::start_on(environment, |builder| builder.program(&request.program))?;
    progress("pods that take over a port of the host");
    node.apply(&server(0, port))?;
    until_answers(&node, 0, port)?;
    let mut times = Vec::new();
    for new in 1..=TAKEOVERS {
        let old = new - 1;
        node.apply(&server(new, port))?;
        node.wait_event(&name(new), WAITS, &port.to_string())?;
        node.remove(&name(old))?;
        wait::until_every(LOOK_EVERY, "the old pod is stopped", TIMEOUT, || {
            let sandboxes = node.sandboxes(&name(old))?;
            Ok((!sandboxes.iter().any(|sandbox| sandbox.ready)).then_some(()))
        })?;
        let released = clock::now();
        until_answers(&node, new, port)?;
        times.push(released.elapsed().as_secs_f64() * 1000.0);
    }
    times.sort_by(f64::total_cmp);
    results.add("hostport_takeover_ms_p50", quantile(&times, 0.50));
    Ok(())
}

fn name(number: usize) -> String {
    format!("server-{number}")
}

/// A pod that serves its own name at this port of the host.
fn server(number: usize, port: u16) -> Value {
    let name = name(number);
    let script = format!("echo {name} > /tmp/index.html; exec httpd -f -h /tmp -p 8080");
    let ports = json!([{ "containerPort": 8080, "hostPort": port }]);
    let main = with(shell("main", &script), &json!({ "ports": ports }));
    pod(&name, &json!({ "containers": [main] }))
}

fn until_answers(node: &Node, number: usize, port: u16) -> Result<()> {
    let (name, address) = (name(number), SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let what = format!("{name} answers at {address}");
    let answers = wait::until_every(LOOK_EVERY, &what, TIMEOUT, || {
        // The socket has no listener for a while.
        if TcpStream::connect_timeout(&address, CONNECT).is_err() {
            return Ok(None);
        }
        let page = http::get_tcp(&address.to_string(), "/").ok();
        Ok(page.filter(|page| page.text().trim() == name).map(drop))
    });
    answers.with_context(|| node.agent().circumstances())
}
