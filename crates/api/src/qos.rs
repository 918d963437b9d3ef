//! The quality of service that follows from requests and limits.

use crate::resources::{QosClass, ResourceAmounts, Resources};

/// Upstream's rule over init and regular containers, or over the pod's own resources if it has any:
/// BestEffort where nothing of cpu and memory is requested or limited; Guaranteed where each limits
/// both, and what is requested of both adds up to what they are limited to; else Burstable. An amount
/// of zero counts as not written.
#[must_use]
pub(crate) fn qos_class<'a>(owners: impl Iterator<Item = &'a Resources>) -> QosClass {
    let mut requests = Sums::default();
    let mut limits = Sums::default();
    let mut each_limits_both = true;
    for resources in owners {
        requests.add(&resources.requests);
        let own = &resources.limits;
        limits.add(own);
        each_limits_both &=
            own.cpu.is_some_and(|cpu| cpu > 0) && own.memory.is_some_and(|memory| memory > 0);
    }
    if requests == Sums::default() && limits == Sums::default() {
        QosClass::BestEffort
    } else if each_limits_both && requests == limits {
        QosClass::Guaranteed
    } else {
        QosClass::Burstable
    }
}

#[derive(Default, PartialEq)]
struct Sums {
    cpu: u128,
    memory: u128,
}

impl Sums {
    fn add(&mut self, amounts: &ResourceAmounts) {
        self.cpu += u128::from(amounts.cpu.unwrap_or(0));
        self.memory += u128::from(amounts.memory.unwrap_or(0));
    }
}
