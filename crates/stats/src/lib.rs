//! Resource usage of the node, its pods and their containers.
//!
//! [`StatsCollector`] reads numbers when somebody asks: the machine's from `/proc` (`node.rs`), those of pods and
//! containers from their cgroups (`cgroups.rs`), their networks through one of their processes (`pod_network.rs`), those
//! of disks from the file systems (`disks.rs`), those of volumes from their files (`volumes.rs`). The runtime knows the
//! sizes of writable layers (`collector/layers.rs`), and is asked for all where the kernel does not suffice
//! (`from_cri.rs`). `assemble.rs` decides which number is whose, `rate.rs` computes usage per second. A file system or a
//! runtime that hangs costs its own numbers, and the time of one request (`in_flight.rs`).
//!
//! A [`StatsSample`] is rendered by functions of it alone:
//!
//! ```
//! use rubelet_stats::{StatsSample, resource_metrics};
//!
//! let text = resource_metrics(&StatsSample::default());
//! assert!(text.contains("resource_scrape_error 0"));
//! ```

mod assemble;
mod cadvisor_metrics;
mod cgroup_request;
mod cgroups;
mod collector;
mod disks;
mod exposition;
mod filesystem;
mod from_cgroup;
mod from_cri;
mod in_flight;
mod interfaces;
mod known_pods;
mod log_metrics;
mod node;
mod pod_network;
mod rate;
mod resource_metrics;
mod sample;
mod summary;
mod system;
mod target;
mod volumes;

pub use self::{
    assemble::UsageSource,
    cadvisor_metrics::cadvisor_metrics,
    collector::{StatsCollector, StatsDetail, StatsSettings},
    log_metrics::log_metrics,
    resource_metrics::resource_metrics,
    sample::{
        CgroupSample, ContainerSample, CpuSample, CpuSpec, FsSample, InterfaceSample, IoSample,
        MemorySample, NetworkSample, NodeSample, PodSample, ProcessSample, StatsSample, SwapSample,
        SystemSample, UsageSample, VolumeSample,
    },
    summary::summary,
    system::{RuntimeCgroup, SystemCgroups},
    target::{LogDirectory, PodDirectories, PodDirectoriesOf, VolumeDirectory},
};
