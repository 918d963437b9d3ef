//! Resources that leak in ten thousand sessions.

use std::{path::Path, time::Duration};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use rubelet_testbed::{proc, wait};

use super::{client::NodeClient, read, text};

const SESSIONS: usize = 10_000;

/// After this many sessions, code pages, arenas and threads that are needed once exist.
const WARM_UP: usize = 500;

/// One in this number of sessions is closed by its client instead of by its process.
const ONE_IN: usize = 4;

/// Descriptors and processes that are left of the sessions, and by how much the agent's private memory
/// has grown, in KiB.
pub(super) async fn measure(client: &NodeClient, pid: u32) -> Result<(f64, f64)> {
    run(client, WARM_UP).await?;
    let before = ResourceUsage::of(client, pid).await?;
    run(client, SESSIONS).await?;
    let after = ResourceUsage::of(client, pid).await?;
    let left = after.things.saturating_sub(before.things);
    let grown = after.memory.saturating_sub(before.memory);
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let figures = (left as f64, grown as f64 / 1024.0);
    Ok(figures)
}

async fn run(client: &NodeClient, sessions: usize) -> Result<()> {
    for number in 0..sessions {
        let mut session = client.exec(&["cat"], true).await?;
        let stdin = session.stdin.as_mut().context("a session has no input")?;
        stdin.write(Bytes::from_static(b"hello")).await?;
        let said = read(&mut session).await?;
        ensure!(said.as_deref() == Some(b"hello"), "cat said {said:?}");
        if number % ONE_IN == 0 {
            continue;
        }
        let stdin = session.stdin.as_mut().context("a session has no input")?;
        stdin.close().await?;
        while read(&mut session).await?.is_some() {}
        ensure!(session.exit.await?.code() == Ok(0), "cat failed");
    }
    Ok(())
}

/// Resources that the agent and its shims hold.
struct ResourceUsage {
    things: u64,
    memory: u64,
}

impl ResourceUsage {
    async fn of(client: &NodeClient, pid: u32) -> Result<Self> {
        // The last sessions may still be ending.
        wait::pass(Duration::from_secs(5));
        let mut things = descriptors(pid)?;
        for child in proc::all_pids() {
            let is_child = proc::Stat::of(child).is_some_and(|stat| stat.parent == pid);
            if is_child {
                things += descriptors(child).unwrap_or(0);
            }
        }
        let memory = proc::private_bytes(pid).context("the agent has exited")?;
        things += processes(client).await?;
        Ok(Self { things, memory })
    }
}

fn descriptors(pid: u32) -> Result<u64> {
    let entries = std::fs::read_dir(Path::new("/proc").join(pid.to_string()).join("fd"))?;
    Ok(entries.count() as u64)
}

/// Processes in the container, as it sees them.
async fn processes(client: &NodeClient) -> Result<u64> {
    let mut session = client
        .exec(&["sh", "-c", "ls -d /proc/[0-9]* | wc -l"], false)
        .await?;
    let text = text(&mut session).await?;
    text.trim()
        .parse()
        .with_context(|| format!("the container said {text:?}"))
}
