//! The node's allocatable resources, and the limits of its cgroups.

use std::path::Path;

use anyhow::{Context as _, anyhow, bail};
use rubelet_api::downward::Allocatable;
use rubelet_base::ErrorChain;
use rubelet_cgroup_plan::CgroupLayout;
use rubelet_cluster::node as node_object;
use rubelet_config::{Flags, KubeletConfiguration, Resolved};
use rubelet_host::{Machine, machine::online_cpus, usage};
use rubelet_node_plan::{
    KubepodsAmounts,
    cpu_list::CpuList,
    existing_cgroup,
    memory_qos::MemoryQos,
    node_allocatable::{ReservedCgroup, ReservedCgroupTexts, kubepods_amounts, reserved_cgroups},
    node_status::{
        NodeSettings,
        hard_thresholds::HardThresholds,
        resources::{self, NodeAmounts, Reserved},
    },
};

use super::{embedded, node::Node};

/// What pods may use, and what others are limited to.
#[derive(Debug)]
pub(super) struct NodeLimits {
    /// What is left for pods.
    pub(super) allocatable: Allocatable,
    /// The limits of the cgroup of all pods.
    pub(super) kubepods: KubepodsAmounts,
    /// Cgroups that are limited to their reservations.
    pub(super) reserved_cgroups: Vec<ReservedCgroup>,
    /// Memory that is not reserved, in bytes.
    pub(super) unreserved_memory: u64,
    /// The feature gate MemoryQoS.
    pub(super) memory_qos: Option<MemoryQos>,
    /// `qosReserved` of memory, in percent.
    pub(super) memory_reserved: Option<u8>,
}

/// The configured reservations.
pub(super) fn reservations(
    config: &KubeletConfiguration,
    flags: &Flags,
) -> anyhow::Result<(Reserved, HardThresholds)> {
    let reserved = Reserved::parse(
        &config.system_reserved,
        &config.kube_reserved,
        &config.reserved_system_cpus,
    );
    let thresholds = match flags.allocatable_ignores_eviction() {
        true => Ok(HardThresholds::default()),
        false => HardThresholds::parse(&config.eviction_hard),
    };
    Ok((
        reserved.map_err(|error| anyhow!("{}", ErrorChain(&error)))?,
        thresholds.map_err(|error| anyhow!("{}", ErrorChain(&error)))?,
    ))
}

/// Whether the reservations limit the cgroup of all pods.
pub(super) fn enforces_pods(config: &KubeletConfiguration) -> bool {
    let mut entries = config.enforce_node_allocatable.iter();
    config.cgroups_per_qos && entries.any(|entry| entry == "pods")
}

/// The limits of this node. `disk` is the size of the file system of `--root-dir`, in bytes.
///
/// # Errors
/// The reservations exceed the machine's capacity, or name what it does not have.
pub(super) fn node_limits(
    resolved: &Resolved,
    flags: &Flags,
    node: &Node,
    disk: Option<u64>,
) -> anyhow::Result<NodeLimits> {
    let config = &resolved.config;
    let machine = &node.machine;
    check_reserved_cpus(&config.reserved_system_cpus, Path::new("/"))?;
    let (reserved, thresholds) = reservations(config, flags)?;
    let capacity = capacity(machine, disk);
    let pids = usage::pids(Path::new("/")).ok().map(|pids| pids.capacity);
    if let Some(pids) = pids.filter(|pids| *pids <= reserved.pids) {
        let asked = reserved.pids;
        bail!(
            "systemReserved and kubeReserved reserve {asked} processes (pid), and the machine can have \
             {pids}: no pod could start one"
        );
    }
    let page_sizes: Vec<u64> = machine
        .hugepages
        .iter()
        .map(|pool| pool.page_size)
        .collect();
    let texts = ReservedCgroupTexts {
        enforce: &config.enforce_node_allocatable,
        system: (&config.system_reserved, &config.system_reserved_cgroup),
        kube: (&config.kube_reserved, &config.kube_reserved_cgroup),
    };
    let mut reserved_cgroups =
        reserved_cgroups(&texts, &page_sizes).map_err(|error| anyhow!("{}", ErrorChain(&error)))?;
    let unreserved_memory = resources::enforced(&capacity, &reserved).memory;
    let memory_qos = memory_qos(resolved, node, unreserved_memory);
    for cgroup in &mut reserved_cgroups {
        if memory_qos.is_some() {
            cgroup.values.memory_min = cgroup.values.memory_limit;
        }
        let driver = embedded::cgroup_driver(&config.cgroup_driver);
        existing_cgroup(&cgroup.name, driver).with_context(|| cgroup.owner.cgroup_field())?;
    }
    Ok(NodeLimits {
        allocatable: allocatable(&capacity, &reserved, &thresholds)?,
        kubepods: kubepods_amounts(
            &capacity,
            // A kernel without that controller limits nothing unless it is asked to.
            pids.filter(|_| reserved.pids > 0 || node.cgroups.has_controller("pids")),
            enforces_pods(config).then_some(&reserved),
        ),
        reserved_cgroups,
        unreserved_memory,
        memory_qos,
        memory_reserved: config
            .qos_reserved
            .get("memory")
            // Validated: a percentage.
            .and_then(|share| share.strip_suffix('%')?.parse().ok()),
    })
}

/// The feature gate MemoryQoS, which needs cgroup version 2.
fn memory_qos(resolved: &Resolved, node: &Node, allocatable: u64) -> Option<MemoryQos> {
    let is_on = resolved.gates.enabled("MemoryQoS");
    (is_on && node.cgroups.layout() == CgroupLayout::V2).then(|| MemoryQos {
        throttling_factor: resolved.config.memory_throttling_factor,
        protects: resolved.config.memory_reservation_policy == "TieredReservation",
        allocatable,
        page_size: u64::try_from(rustix::param::page_size()).unwrap_or(4096),
    })
}

fn capacity(machine: &Machine, disk: Option<u64>) -> NodeAmounts {
    let facts = node_object::node_facts(machine, Path::new("/"), "");
    resources::capacity(&NodeSettings::new(""), &facts, disk)
}

/// The rest of the machine's capacity.
fn allocatable(
    capacity: &NodeAmounts,
    reserved: &Reserved,
    thresholds: &HardThresholds,
) -> anyhow::Result<Allocatable> {
    if let Some(problem) = resources::overcommitted(capacity, reserved, thresholds) {
        return Err(anyhow!(problem));
    }
    let left = resources::allocatable(capacity, reserved, thresholds);
    Ok(Allocatable {
        cpu: left.cpu,
        memory: left.memory,
    })
}

fn check_reserved_cpus(reserved: &str, root: &Path) -> anyhow::Result<()> {
    if reserved.is_empty() {
        return Ok(());
    }
    let asked = CpuList::parse(reserved).context("reservedSystemCPUs")?;
    let online = CpuList::parse(&online_cpus(root)?)?;
    if !asked.is_subset_of(&online) {
        bail!("reservedSystemCPUs: {asked} is not a subset of the CPUs that are online, {online}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reserved_is_not_a_limit_that_pods_see() {
        let machine = Machine::read(Path::new("/")).unwrap();
        let mut config = KubeletConfiguration::default();
        let flags = |given: &[&str]| {
            rubelet_config::parse_flags(given.iter().map(|flag| (*flag).to_owned())).unwrap()
        };
        let left_with = |config: &KubeletConfiguration, flags: &Flags| {
            let (reserved, thresholds) = reservations(config, flags)?;
            allocatable(&capacity(&machine, None), &reserved, &thresholds)
        };
        let left = |config: &KubeletConfiguration| left_with(config, &flags(&[]));
        let evicting = left(&config).unwrap();
        let ignored = flags(&["--experimental-allocatable-ignore-eviction"]);
        let ignoring = left_with(&config, &ignored).unwrap();
        config.eviction_hard.clear();
        let all = left(&config).unwrap();
        assert_eq!(all.cpu, machine.cpus * 1000);
        assert_eq!(ignoring, all);
        assert!(evicting.memory < all.memory);
        let reserve = |config: &mut KubeletConfiguration, name: &str, amount: &str| {
            config.system_reserved.insert(name.into(), amount.into());
        };
        reserve(&mut config, "cpu", "100m");
        reserve(&mut config, "memory", "1Mi");
        let less = left(&config).unwrap();
        assert_eq!(less.cpu, all.cpu - 100);
        assert_eq!(less.memory, all.memory - (1 << 20));
        reserve(&mut config, "memory", "1Ei");
        assert!(left(&config).is_err());
    }

    #[test]
    fn only_processors_of_the_machine_are_reserved() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("sys/devices/system/cpu");
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("online"), "0-2\n").unwrap();
        for (reserved, refused) in [
            ("", None),
            ("0,2", None),
            (
                "2-3",
                Some("reservedSystemCPUs: 2-3 is not a subset of the CPUs that are online, 0-2"),
            ),
        ] {
            let answer = check_reserved_cpus(reserved, root.path());
            assert_eq!(
                answer.err().map(|error| error.to_string()).as_deref(),
                refused
            );
        }
    }

    #[test]
    fn all_pods_are_limited_unless_the_configuration_says_otherwise() {
        let mut config = KubeletConfiguration::default();
        assert!(enforces_pods(&config));
        config.cgroups_per_qos = false;
        assert!(!enforces_pods(&config));
        config.cgroups_per_qos = true;
        config.enforce_node_allocatable = vec!["none".to_owned()];
        assert!(!enforces_pods(&config));
    }
}
