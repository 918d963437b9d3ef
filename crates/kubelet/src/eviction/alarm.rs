//! Reports of the kernel that memory may be short, so that nobody has to look often.

use std::future::pending;

use async_trait::async_trait;
use rubelet_host::{CgroupFs, cgroup::MemoryLevel, memory_stall::MemoryStall};
use tracing::{debug, info};

/// Reports that memory may be short.
#[async_trait]
pub trait MemoryAlarm: Send + Sync + 'static {
    /// Resolves when memory may be short since the last call; never if that is not known any more. `headroom`: the bytes
    /// that may still be taken before a threshold is met, if there is one that is not met.
    async fn rings(&self, headroom: Option<u64>);
}

/// Pressure stall information of the whole machine: processes wait for memory; it works on both cgroup versions. With
/// version 1 also its notification of a level, which comes before the kernel has to search for memory.
#[derive(Debug)]
pub struct KernelMemoryAlarm {
    stall: Option<MemoryStall>,
    level: Option<MemoryLevel>,
}

impl KernelMemoryAlarm {
    /// The alarm, or `None` if the kernel has none for this process: then memory is measured each 10
    /// s, and more often while it falls. Must be called within a tokio runtime.
    #[must_use]
    pub fn new(cgroups: &CgroupFs) -> Option<Self> {
        let stall = MemoryStall::watch().inspect_err(|error| {
            info!(%error, "The kernel does not report a lack of memory; it is measured from time to time");
        });
        let (stall, level) = (stall.ok(), cgroups.memory_level());
        (stall.is_some() || level.is_some()).then_some(Self { stall, level })
    }

    async fn stalled(&self) {
        if let Some(stall) = &self.stall {
            match stall.stalled().await {
                Ok(()) => return,
                Err(error) => {
                    info!(%error, "The kernel does not report a lack of memory any more");
                }
            }
        }
        pending::<()>().await;
    }

    async fn reached(&self, headroom: Option<u64>) {
        if let (Some(level), Some(headroom)) = (&self.level, headroom) {
            match level.reached(headroom).await {
                Ok(()) => return,
                Err(error) => debug!(%error, "The kernel does not report the level of memory"),
            }
        }
        pending::<()>().await;
    }
}

#[async_trait]
impl MemoryAlarm for KernelMemoryAlarm {
    async fn rings(&self, headroom: Option<u64>) {
        tokio::select! {
            () = self.stalled() => {}
            () = self.reached(headroom) => {}
        }
    }
}
