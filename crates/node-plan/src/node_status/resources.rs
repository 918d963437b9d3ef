//! Capacity, reservations and allocatable resources of the node.

use std::collections::BTreeMap;

use rubelet_api::{
    amount,
    quantity::{Quantity, QuantityError},
    resource_name::{CPU, EPHEMERAL_STORAGE, MEMORY, hugepages_name, hugepages_size},
    resources::{Bytes, MilliCpu},
};

use super::{NodeFacts, NodeSettings, hard_thresholds::HardThresholds, object::Texts};
use crate::{cpu_list::CpuList, eviction::EvictionSignal};

const PODS: &str = "pods";

/// Amounts of the resources that the kubelet accounts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeAmounts {
    /// Thousandths of a core.
    pub cpu: MilliCpu,
    /// Bytes.
    pub memory: Bytes,
    /// Bytes of the file system of volumes and logs; `None` if not accounted or unknown.
    pub ephemeral_storage: Option<Bytes>,
    /// Maximum number of pods.
    pub pods: u64,
    /// Huge pages: page size and bytes.
    pub hugepages: BTreeMap<Bytes, Bytes>,
}

/// Resources reserved for the system.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reserved {
    /// Thousandths of a core.
    pub cpu: MilliCpu,
    /// Bytes.
    pub memory: Bytes,
    /// Bytes.
    pub ephemeral_storage: Bytes,
    /// Processes.
    pub pids: u64,
}

/// An invalid reservation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{resource}: invalid quantity {text:?}")]
pub struct ReservedError {
    /// The resource.
    pub resource: String,
    /// The configured text.
    pub text: String,
    /// The parse error.
    #[source]
    pub source: QuantityError,
}

impl Reserved {
    /// Adds up `systemReserved` and `kubeReserved`. `reservedSystemCPUs`, a list such as `0-1,4`,
    /// replaces the CPUs of both if it is set.
    ///
    /// # Errors
    /// An amount is not a quantity.
    pub fn parse(
        system: &BTreeMap<String, String>,
        kube: &BTreeMap<String, String>,
        reserved_cpus: &str,
    ) -> Result<Self, ReservedError> {
        let mut sum = Self::default();
        for (resource, text) in system.iter().chain(kube) {
            let quantity = Quantity::parse(text).map_err(|source| ReservedError {
                resource: resource.clone(),
                text: text.clone(),
                source,
            })?;
            let (kind, value) = match resource.as_str() {
                CPU => (&mut sum.cpu, quantity.milli_cpu()),
                MEMORY => (&mut sum.memory, quantity.units()),
                EPHEMERAL_STORAGE => (&mut sum.ephemeral_storage, quantity.units()),
                "pid" => (&mut sum.pids, quantity.units()),
                // The configuration allows no others.
                _ => continue,
            };
            *kind = kind.saturating_add(value);
        }
        if !reserved_cpus.is_empty() {
            // The configuration is validated: it is a list.
            let cpus = CpuList::parse(reserved_cpus).unwrap_or_default();
            sum.cpu = cpus.count().saturating_mul(1000);
        }
        Ok(sum)
    }
}

/// The capacity of the node.
#[must_use]
pub fn capacity(
    settings: &NodeSettings,
    facts: &NodeFacts,
    ephemeral_storage: Option<Bytes>,
) -> NodeAmounts {
    let per_core = match settings.pods_per_core {
        0 => u64::MAX,
        count => count.saturating_mul(facts.cpus),
    };
    NodeAmounts {
        cpu: facts.cpus.saturating_mul(1000),
        memory: facts.memory,
        ephemeral_storage: ephemeral_storage.filter(|_| settings.local_storage),
        pods: settings.max_pods.min(per_core),
        hugepages: facts.hugepages.clone(),
    }
}

/// The allocatable resources: the capacity without reservations, without the hard eviction
/// thresholds, and memory without huge pages.
#[must_use]
pub fn allocatable(
    capacity: &NodeAmounts,
    reserved: &Reserved,
    thresholds: &HardThresholds,
) -> NodeAmounts {
    let kept = |signal: EvictionSignal, all: Bytes| thresholds.of(signal, all);
    let memory_kept = kept(EvictionSignal::MemoryAvailable, capacity.memory);
    let hugepages = capacity
        .hugepages
        .values()
        .fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
    NodeAmounts {
        cpu: capacity.cpu.saturating_sub(reserved.cpu),
        memory: capacity
            .memory
            .saturating_sub(reserved.memory)
            .saturating_sub(memory_kept)
            .saturating_sub(hugepages),
        ephemeral_storage: capacity.ephemeral_storage.map(|all| {
            all.saturating_sub(reserved.ephemeral_storage)
                .saturating_sub(kept(EvictionSignal::NodefsAvailable, all))
        }),
        pods: capacity.pods,
        hugepages: capacity.hugepages.clone(),
    }
}

/// The limits of the cgroup of all pods: the capacity without reservations. Eviction thresholds are
/// not subtracted: pods may use that memory until they are evicted.
#[must_use]
pub fn enforced(capacity: &NodeAmounts, reserved: &Reserved) -> NodeAmounts {
    NodeAmounts {
        cpu: capacity.cpu.saturating_sub(reserved.cpu),
        memory: capacity.memory.saturating_sub(reserved.memory),
        ephemeral_storage: capacity
            .ephemeral_storage
            .map(|all| all.saturating_sub(reserved.ephemeral_storage)),
        ..capacity.clone()
    }
}

/// The error if reservations exceed the capacity, in upstream's words: the agent must not start.
#[must_use]
pub fn overcommitted(
    capacity: &NodeAmounts,
    reserved: &Reserved,
    thresholds: &HardThresholds,
) -> Option<String> {
    let kept = |signal: EvictionSignal, all: Bytes| thresholds.of(signal, all);
    let memory = reserved
        .memory
        .saturating_add(kept(EvictionSignal::MemoryAvailable, capacity.memory));
    let storage = capacity.ephemeral_storage.map(|all| {
        let wanted = kept(EvictionSignal::NodefsAvailable, all);
        (reserved.ephemeral_storage.saturating_add(wanted), all)
    });
    let complain = |name: &str, wanted: Box<str>, all: Box<str>| {
        format!(
            "Resource {name:?} has a reservation of {wanted} but capacity of {all}. \
             Expected capacity >= reservation."
        )
    };
    let mut found = Vec::new();
    if reserved.cpu > capacity.cpu {
        found.push(complain(
            CPU,
            amount::cpu(reserved.cpu),
            amount::cpu(capacity.cpu),
        ));
    }
    if memory > capacity.memory {
        found.push(complain(
            MEMORY,
            amount::bytes(memory),
            amount::bytes(capacity.memory),
        ));
    }
    if let Some((wanted, all)) = storage.filter(|(wanted, all)| wanted > all) {
        found.push(complain(
            EPHEMERAL_STORAGE,
            amount::bytes(wanted),
            amount::bytes(all),
        ));
    }
    (!found.is_empty()).then(|| {
        format!(
            "invalid Node Allocatable configuration. {}",
            found.join(" ")
        )
    })
}

/// True for extended resources, such as devices.
#[must_use]
pub fn is_extended(name: &str) -> bool {
    let native = !name.contains('/') || name.contains("kubernetes.io/");
    !native && !name.starts_with("requests.")
}

impl NodeAmounts {
    /// The amounts by name, as in the status.
    #[must_use]
    pub fn texts(&self) -> Texts {
        let mut texts = Texts::from([
            (CPU.into(), amount::cpu(self.cpu)),
            (MEMORY.into(), amount::bytes(self.memory)),
            (PODS.into(), amount::decimal(self.pods)),
        ]);
        if let Some(storage) = self.ephemeral_storage {
            texts.insert(EPHEMERAL_STORAGE.into(), amount::bytes(storage));
        }
        for (page_size, bytes) in &self.hugepages {
            texts.insert(hugepages_name(*page_size), amount::bytes(*bytes));
        }
        texts
    }

    /// The amounts of a status; missing ones are 0.
    #[must_use]
    pub fn from_texts(texts: &Texts) -> Self {
        let quantity = |name: &str| Quantity::parse(texts.get(name)?).ok();
        let units = |name: &str| quantity(name).map_or(0, Quantity::units);
        let hugepages = texts
            .keys()
            .filter_map(|name| Some((hugepages_size(name)?, units(name))));
        Self {
            cpu: quantity(CPU).map_or(0, Quantity::milli_cpu),
            memory: units(MEMORY),
            ephemeral_storage: quantity(EPHEMERAL_STORAGE).map(Quantity::units),
            pods: units(PODS),
            hugepages: hugepages.collect(),
        }
    }
}

/// Sets an amount; an equal amount in another notation is kept.
pub(super) fn set(list: &mut Texts, name: &str, text: Box<str>) {
    let same = list
        .get(name)
        .is_some_and(|old| *old == text || Quantity::parse(old) == Quantity::parse(&text));
    if !same {
        list.insert(name.into(), text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|&(key, value)| (key.to_owned(), value.to_owned()))
            .collect()
    }

    fn facts() -> NodeFacts {
        NodeFacts {
            cpus: 4,
            memory: 8 * GIB,
            hugepages: BTreeMap::from([(2 << 20, GIB), (GIB, 0)]),
            ..NodeFacts::default()
        }
    }

    fn thresholds(pairs: &[(&str, &str)]) -> HardThresholds {
        HardThresholds::parse(&texts(pairs)).unwrap()
    }

    #[test]
    fn pods_are_bounded_by_the_node_and_by_its_cores() {
        let mut settings = NodeSettings::new("n");
        for (max_pods, pods_per_core, expected) in [(110, 0, 110), (110, 10, 40), (20, 10, 20)] {
            (settings.max_pods, settings.pods_per_core) = (max_pods, pods_per_core);
            assert_eq!(capacity(&settings, &facts(), None).pods, expected);
        }
        assert_eq!(
            capacity(&settings, &facts(), Some(GIB)).ephemeral_storage,
            Some(GIB)
        );
        settings.local_storage = false;
        assert_eq!(
            capacity(&settings, &facts(), Some(GIB)).ephemeral_storage,
            None
        );
    }

    #[test]
    fn what_is_reserved_or_kept_free_is_not_left_for_pods() {
        let capacity = capacity(&NodeSettings::new("n"), &facts(), Some(100_000));
        let reserved = Reserved::parse(
            &texts(&[("cpu", "200m"), ("memory", "1Gi"), ("pid", "100")]),
            &texts(&[("cpu", "0.3"), ("ephemeral-storage", "10k")]),
            "",
        )
        .unwrap();
        let thresholds = thresholds(&[("memory.available", "1Gi"), ("nodefs.available", "10%")]);
        let left = allocatable(&capacity, &reserved, &thresholds).texts();
        let left: Vec<_> = left.iter().map(|(name, text)| (&**name, &**text)).collect();
        assert_eq!(
            left,
            [
                ("cpu", "3500m"),
                ("ephemeral-storage", "80000"),
                ("hugepages-1Gi", "0"),
                ("hugepages-2Mi", "1Gi"),
                ("memory", "5Gi"),
                ("pods", "110"),
            ]
        );
        assert_eq!(reserved.pids, 100);
        let enforced = enforced(&capacity, &reserved);
        assert_eq!((enforced.cpu, enforced.memory), (3500, 7 * GIB));
    }

    #[test]
    fn a_list_of_cpus_stands_for_the_processors_of_both() {
        let cpu = texts(&[("cpu", "500m")]);
        let reserved = Reserved::parse(&cpu, &cpu, "0-1,4").unwrap();
        assert_eq!(reserved.cpu, 3000);
        let wrong = Reserved::parse(&texts(&[("memory", "much")]), &cpu, "");
        assert_eq!(
            wrong.unwrap_err().to_string(),
            "memory: invalid quantity \"much\""
        );
    }

    #[test]
    fn more_than_there_is_can_not_be_reserved() {
        let capacity = capacity(&NodeSettings::new("n"), &facts(), None);
        let reserved = Reserved::parse(&texts(&[("cpu", "5")]), &texts(&[]), "").unwrap();
        let none = thresholds(&[]);
        assert_eq!(
            overcommitted(&capacity, &reserved, &none).as_deref(),
            Some(
                "invalid Node Allocatable configuration. Resource \"cpu\" has a reservation of 5 \
                 but capacity of 4. Expected capacity >= reservation."
            )
        );
        assert_eq!(overcommitted(&capacity, &Reserved::default(), &none), None);
        let left = allocatable(&capacity, &reserved, &none);
        assert_eq!(left.cpu, 0, "never less than nothing");
    }

    #[test]
    fn names_tell_what_a_resource_is() {
        for (name, extended) in [
            ("cpu", false),
            ("hugepages-2Mi", false),
            ("example.com/dongle", true),
            ("kubernetes.io/batch", false),
            ("x.kubernetes.io/batch", false),
            ("requests.example.com/dongle", false),
        ] {
            assert_eq!(is_extended(name), extended, "{name}");
        }
    }

    #[test]
    fn amounts_can_be_read_back() {
        let capacity = capacity(&NodeSettings::new("n"), &facts(), Some(GIB));
        assert_eq!(NodeAmounts::from_texts(&capacity.texts()), capacity);
    }

    #[test]
    fn other_words_for_the_same_amount_stay() {
        let mut list = Texts::from([("memory".into(), "1048576".into())]);
        set(&mut list, "memory", "1Mi".into());
        set(&mut list, "cpu", "2".into());
        set(&mut list, "cpu", "3".into());
        assert_eq!(&*list["memory"], "1048576");
        assert_eq!(&*list["cpu"], "3");
    }
}
