//! Sessions with another runtime, which the agent proxies: the client and the runtime each have a connection of
//! their own.

use std::net::Ipv4Addr;

use anyhow::Result;
use rubelet_testbed::Containerd;
use tokio::runtime::Runtime;

use super::{
    super::{Request, progress, report::Results},
    BOX, manifest, output, start, zeros,
};

/// What is measured here.
pub(super) const NAMES: [&str; 2] = ["exec_mib_s_containerd", "portforward_mib_s_containerd"];

/// Measures [`NAMES`].
pub(super) fn measure(
    request: &Request<'_>,
    runtime: &Runtime,
    results: &mut Results,
) -> Result<()> {
    progress("1 GiB through sessions with containerd");
    let containerd = Containerd::start()?;
    let (agent, client) = start(request, &containerd, Ipv4Addr::LOCALHOST, BOX, &manifest())?;
    runtime.block_on(async {
        results.add("exec_mib_s_containerd", output(&client).await?);
        let dialer = client.port_forward().await?;
        results.add("portforward_mib_s_containerd", zeros(&*dialer).await?);
        anyhow::Ok(())
    })?;
    drop(agent);
    containerd.remove()
}
