//! Injected faults: rules for requests, and faults of connections.

pub(crate) mod nulls;
mod parse;
mod profile;
mod rule;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::{dice::Dice, route::Target, user::User};

pub use self::{
    parse::RuleError,
    profile::{PROFILES, profile},
    rule::{Fault, Rule},
};

/// The faults of one request.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Verdict {
    /// Sum of the delays of all rules that match.
    pub(crate) delay: std::time::Duration,
    /// The first other fault.
    pub(crate) fault: Option<Fault>,
    /// The rule of that fault.
    pub(crate) rule: Option<String>,
}

/// Faults of connections. Each connection has a number, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ConnectionFaults {
    /// Nothing is read or written.
    pub(crate) frozen: bool,
    /// Connections up to this number are closed.
    pub(crate) closed: u64,
    /// Connections up to this number stay open, but are not served any more.
    pub(crate) hung: u64,
    /// No connection is accepted.
    pub(crate) down: bool,
}

/// The faults of a server.
pub(crate) struct Faults {
    inner: Mutex<FaultState>,
    connection_faults: watch::Sender<ConnectionFaults>,
    /// Whether the port is open.
    pub(crate) listening: watch::Sender<bool>,
}

struct FaultState {
    rules: Vec<ActiveRule>,
    dice: Dice,
    /// Number of connections so far.
    connections: u64,
}

struct ActiveRule {
    rule: Rule,
    /// Number of matching requests.
    seen: u64,
    hits: u64,
}

impl Faults {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            inner: Mutex::new(FaultState {
                rules: Vec::new(),
                dice: Dice::new(seed ^ 0xfa17),
                connections: 0,
            }),
            connection_faults: watch::Sender::new(ConnectionFaults::default()),
            listening: watch::Sender::new(true),
        }
    }

    pub(crate) fn add(&self, rule: Rule) {
        self.inner.lock().rules.push(ActiveRule {
            rule,
            seen: 0,
            hits: 0,
        });
    }

    pub(crate) fn clear(&self) {
        self.inner.lock().rules.clear();
    }

    /// Each rule with the number of its faults.
    pub(crate) fn hits(&self) -> Vec<(String, u64)> {
        let inner = self.inner.lock();
        let rules = inner.rules.iter();
        rules
            .map(|active| (active.rule.to_string(), active.hits))
            .collect()
    }

    /// Decides the faults of a request.
    pub(crate) fn decide(&self, verb: &str, target: &Target, user: &User) -> Verdict {
        let mut verdict = Verdict::default();
        let mut inner = self.inner.lock();
        let FaultState { rules, dice, .. } = &mut *inner;
        for active in rules {
            let ActiveRule { rule, seen, hits } = active;
            if !rule.matches(verb, target, user) {
                continue;
            }
            let is_delay = matches!(rule.fault, Fault::Delay { .. });
            if !is_delay && verdict.fault.is_some() {
                continue;
            }
            *seen += 1;
            if *seen <= rule.skip || rule.times.is_some_and(|times| *hits >= times) {
                continue;
            }
            if !dice.hits(rule.share) {
                continue;
            }
            *hits += 1;
            match &rule.fault {
                Fault::Delay { from, to } => verdict.delay += dice.between(*from, *to),
                fault => {
                    verdict.fault = Some(fault.clone());
                    verdict.rule = Some(rule.to_string());
                }
            }
        }
        verdict
    }

    /// The number of a new connection.
    pub(crate) fn connected(&self) -> u64 {
        let mut inner = self.inner.lock();
        inner.connections += 1;
        inner.connections
    }

    pub(crate) fn connection_faults(&self) -> watch::Receiver<ConnectionFaults> {
        self.connection_faults.subscribe()
    }

    /// Changes the faults of connections; `change` receives the number of the newest one.
    pub(crate) fn update_connections(&self, change: impl FnOnce(&mut ConnectionFaults, u64)) {
        let newest = self.inner.lock().connections;
        self.connection_faults
            .send_modify(|connection_faults| change(connection_faults, newest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    fn decide(faults: &Faults, verb: &str) -> Verdict {
        let target = Target::object(Kind::of("pods").unwrap(), "a", "web");
        faults.decide(verb, &target, &User::node("n"))
    }

    #[test]
    fn rules_skip_and_stop_by_count() {
        let faults = Faults::new(1);
        faults.add("patch pods skip=1 times=2 code=409".parse().unwrap());
        let hit = |verb| decide(&faults, verb).fault.is_some();
        assert!(!hit("get"));
        assert_eq!(
            [hit("patch"), hit("patch"), hit("patch"), hit("patch")],
            [false, true, true, false]
        );
        assert_eq!(faults.hits()[0].1, 2);
    }

    #[test]
    fn delays_add_up_and_the_first_other_fault_wins() {
        let faults = Faults::new(1);
        for rule in [
            "* * delay=10ms",
            "write * delay=5ms",
            "* pods cut",
            "* * code=500",
        ] {
            faults.add(rule.parse().unwrap());
        }
        let verdict = decide(&faults, "update");
        assert_eq!(verdict.delay.as_millis(), 15);
        assert_eq!(verdict.fault, Some(Fault::Cut));
        assert_eq!(decide(&faults, "list").delay.as_millis(), 10);
    }
}
