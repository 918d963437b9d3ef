//! Log of injected faults, with counts per rule.

use std::collections::{BTreeMap, VecDeque};

use parking_lot::Mutex;

use crate::{decide::Decision, subject::Subject};

/// Maximum number of lines.
const LINES: usize = 200;
/// Maximum number of rules that are counted individually; further ones are counted together.
const RULES: usize = 10_000;

/// Number of faults that a rule injected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Injected {
    /// The rule.
    pub rule: String,
    /// The number.
    pub count: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Journal(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    total: u64,
    by_rule: BTreeMap<String, u64>,
    lines: VecDeque<String>,
}

impl Journal {
    pub(crate) fn note(&self, decision: &Decision, call: &str, subject: &Subject) {
        let line = {
            let mut pages = self.0.lock();
            pages.total += 1;
            let rule = if pages.by_rule.len() < RULES || pages.by_rule.contains_key(&decision.rule)
            {
                decision.rule.as_str()
            } else {
                "(further rules)"
            };
            *pages.by_rule.entry(rule.to_owned()).or_default() += 1;
            let line = format!(
                "#{} seed={} rule=\"{}\": {call} {}",
                pages.total,
                decision.seed,
                decision.rule,
                subject.shown()
            );
            let line = line.trim_end().to_owned();
            pages.lines.push_back(line.clone());
            if pages.lines.len() > LINES {
                pages.lines.pop_front();
            }
            line
        };
        tracing::info!("Injected {line}");
    }

    pub(crate) fn counts(&self) -> Vec<Injected> {
        let pages = self.0.lock();
        let counts = pages.by_rule.iter().map(|(rule, count)| Injected {
            rule: rule.clone(),
            count: *count,
        });
        counts.collect()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().lines.iter().cloned().collect()
    }
}
