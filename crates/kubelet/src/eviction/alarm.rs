//! Reports of the kernel that memory may be short, so that nobody has to look often.

use std::future::pending;

use async_trait::async_trait;
use rubelet_host::memory_stall::MemoryStall;
use tracing::info;

/// Reports that memory may be short.
#[async_trait]
pub trait MemoryAlarm: Send + Sync + 'static {
    /// Resolves when memory may be short since the last call; never if that is not known any more.
    async fn rings(&self);
}

/// Pressure stall information of the whole machine: processes wait for memory. It works on both
/// cgroup versions, where the kubelet has only thresholds of version 1.
#[derive(Debug)]
pub struct KernelMemoryAlarm(MemoryStall);

impl KernelMemoryAlarm {
    /// The alarm, or `None` if the kernel has none for this process: then memory is measured each 10
    /// s, and more often while it falls. Must be called within a tokio runtime.
    #[must_use]
    pub fn new() -> Option<Self> {
        match MemoryStall::watch() {
            Ok(stall) => Some(Self(stall)),
            Err(error) => {
                info!(%error, "The kernel does not report a lack of memory; it is measured from time to time");
                None
            }
        }
    }
}

#[async_trait]
impl MemoryAlarm for KernelMemoryAlarm {
    async fn rings(&self) {
        if let Err(error) = self.0.stalled().await {
            info!(%error, "The kernel does not report a lack of memory any more");
            pending::<()>().await;
        }
    }
}
