//! What must hold after a random life, checked in the oracle's record.

use std::collections::{BTreeMap, BTreeSet};

use rubelet_sim::EntryKind;

use super::RandomLife;

impl RandomLife {
    /// Nothing ran twice at a time, and init containers ran in order, each in its sandbox before
    /// the others.
    pub(super) fn assert_order(&self) {
        let oracle = self.node.sim.oracle();
        let mut running: BTreeSet<(&str, &str)> = BTreeSet::new();
        let mut ended_well: BTreeSet<(&str, &str)> = BTreeSet::new();
        for entry in oracle.entries() {
            match &entry.what {
                EntryKind::ContainerStarted(of) => {
                    let (sandbox, name) = (of.sandbox_id.as_str(), of.name.as_str());
                    let inits = (0..self.life.init).map(|index| format!("init{index}"));
                    let earlier: Vec<_> = inits.take_while(|init| init != name).collect();
                    for init in &earlier {
                        let done = ended_well.contains(&(sandbox, init.as_str()));
                        assert!(done, "{of} started before {init} had ended\n{oracle}");
                    }
                    let beside = running.iter().find(|(other, beside)| {
                        *other == sandbox
                            && (beside.starts_with("init") || name.starts_with("init"))
                    });
                    assert!(beside.is_none(), "{of} started beside {beside:?}\n{oracle}");
                    running.insert((sandbox, name));
                }
                EntryKind::ContainerExited { instance, code, .. } => {
                    let key = (instance.sandbox_id.as_str(), instance.name.as_str());
                    running.remove(&key);
                    if *code == 0 {
                        ended_well.insert(key);
                    }
                }
                _ => {}
            }
        }
        for uid in &self.uids {
            self.node.assert_never_twice(uid);
        }
    }

    /// I6: each exit code was reported correctly, before the agent removed the container.
    pub(super) fn assert_codes(&self) {
        let oracle = self.node.sim.oracle();
        let mut codes = BTreeMap::new();
        for entry in oracle.entries() {
            match &entry.what {
                EntryKind::ContainerExited { instance, code, .. } => {
                    codes.insert(&instance.id, *code);
                    let reported = self.delivery.codes.get(&instance.id);
                    assert!(
                        reported.is_none_or(|reported| reported == code),
                        "I6: {instance} exited with {code}, and {reported:?} was reported\n{oracle}"
                    );
                }
                EntryKind::ContainerRemoved(of)
                    if !self.removed_sandboxes.contains(&of.sandbox_id) =>
                {
                    let lost =
                        codes.contains_key(&of.id) && !self.delivery.codes.contains_key(&of.id);
                    assert!(
                        !lost,
                        "I6: {of} was removed and its exit was never reported\n{oracle}"
                    );
                }
                _ => {}
            }
        }
    }

    /// The postStart hook of each container that runs in the end has succeeded.
    pub(super) fn assert_hooks(&self) {
        if self.life.hooks.is_empty() {
            return;
        }
        let oracle = self.node.sim.oracle();
        for uid in &self.uids {
            for name in (0..self.life.regular).map(|index| format!("app{index}")) {
                let Some(id) = self.node.sim.running(uid, &name) else {
                    continue;
                };
                let done = oracle.execs(uid, &name).into_iter().any(|exec| {
                    exec.id == id
                        && exec.command == "start"
                        && exec.ended.is_some_and(|(_, code)| code == Some(0))
                });
                assert!(done, "the postStart hook of {id} did not succeed\n{oracle}");
            }
        }
    }
}
