//! The node's allocatable resources.

use std::path::Path;

use anyhow::anyhow;
use rubelet_api::downward::Allocatable;
use rubelet_base::ErrorChain;
use rubelet_cluster::node as node_object;
use rubelet_config::KubeletConfiguration;
use rubelet_host::Machine;
use rubelet_node_plan::node_status::{
    NodeSettings,
    hard_thresholds::HardThresholds,
    resources::{self, Reserved},
};

/// The configured reservations.
pub(super) fn reservations(
    config: &KubeletConfiguration,
) -> anyhow::Result<(Reserved, HardThresholds)> {
    let reserved = Reserved::parse(
        &config.system_reserved,
        &config.kube_reserved,
        &config.reserved_system_cpus,
    );
    let thresholds = HardThresholds::parse(&config.eviction_hard);
    Ok((
        reserved.map_err(|error| anyhow!("{}", ErrorChain(&error)))?,
        thresholds.map_err(|error| anyhow!("{}", ErrorChain(&error)))?,
    ))
}

/// The rest of the machine's capacity. `disk` is the size of the file system of `--root-dir`, in
/// bytes.
///
/// # Errors
/// The reservations exceed the machine's capacity.
pub(super) fn allocatable(
    config: &KubeletConfiguration,
    machine: &Machine,
    disk: Option<u64>,
) -> anyhow::Result<Allocatable> {
    let (reserved, thresholds) = reservations(config)?;
    let facts = node_object::node_facts(machine, Path::new("/"), "");
    let capacity = resources::capacity(&NodeSettings::new(""), &facts, disk);
    if let Some(problem) = resources::overcommitted(&capacity, &reserved, &thresholds) {
        return Err(anyhow!(problem));
    }
    let left = resources::allocatable(&capacity, &reserved, &thresholds);
    Ok(Allocatable {
        cpu: left.cpu,
        memory: left.memory,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reserved_is_not_a_limit_that_pods_see() {
        let machine = Machine::read(Path::new("/")).unwrap();
        let mut config = KubeletConfiguration::default();
        config.eviction_hard.clear();
        let left = |config: &KubeletConfiguration| allocatable(config, &machine, None);
        let all = left(&config).unwrap();
        assert_eq!(all.cpu, machine.cpus * 1000);
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
}
