//! The quality of service that follows from requests and limits.

use crate::{
    container::Container,
    resources::{QosClass, ResourceAmounts},
};

/// Upstream's rule over init and regular containers: BestEffort where nothing of cpu and memory is
/// requested or limited; Guaranteed where each container limits both, and what is requested of both
/// adds up to what they are limited to; else Burstable. An amount of zero counts as not written.
#[must_use]
pub fn qos_class<'a>(containers: impl Iterator<Item = &'a Container>) -> QosClass {
    let mut requests = Sums::default();
    let mut limits = Sums::default();
    let mut each_limits_both = true;
    for container in containers {
        requests.add(&container.resources.requests);
        let own = &container.resources.limits;
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
