//! Chooses the fault of a call or of a stream's message.

use crate::{
    dice::Dice,
    rpc::Rpc,
    rule::{Fault, Rule, Select, Stage},
    subject::Subject,
};

/// A seed and rules in order of precedence, with their counters.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    seed: u64,
    rules: Vec<CountedRule>,
}

#[derive(Debug, Clone)]
struct CountedRule {
    rule: Rule,
    /// Number of calls or messages that it matched.
    matched: u64,
    /// Number of faults that it injected.
    hit: u64,
}

/// A fault to inject.
#[derive(Debug, Clone)]
pub(crate) struct Decision {
    pub(crate) seed: u64,
    pub(crate) rule: String,
    pub(crate) fault: Fault,
    pub(crate) select: Select,
    /// For the random parameters of the fault.
    pub(crate) dice: Dice,
}

impl Rules {
    /// Creates rules with a seed for their random decisions.
    #[must_use]
    pub fn new(seed: u64, rules: Vec<Rule>) -> Self {
        let counted = |rule| CountedRule {
            rule,
            matched: 0,
            hit: 0,
        };
        Self {
            seed,
            rules: rules.into_iter().map(counted).collect(),
        }
    }

    /// No rules: nothing is changed.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// The seed.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The rules, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter().map(|counted| &counted.rule)
    }

    /// Whether lists must be decoded to map identifiers to pods.
    pub(crate) fn name_pods(&self) -> bool {
        self.iter().any(|rule| rule.select.names_pods())
    }

    /// The fault of the first rule that matches and whose conditions hold.
    pub(crate) fn decide(
        &mut self,
        stage: Stage,
        rpc: &Rpc,
        subject: &Subject,
    ) -> Option<Decision> {
        let seed = self.seed;
        self.rules
            .iter_mut()
            .enumerate()
            .filter(|(_, counted)| {
                counted.rule.matches_rpc(rpc, stage) && counted.rule.matches(rpc, subject)
            })
            .find_map(|(place, counted)| counted.decide(seed, place))
    }
}

impl CountedRule {
    fn decide(&mut self, seed: u64, place: usize) -> Option<Decision> {
        let conditions = self.rule.conditions;
        let count = self.matched;
        self.matched += 1;
        let dice = Dice::for_decision(seed, place, count);
        let mut chance = dice.clone();
        let hit = count >= conditions.skip
            && (count - conditions.skip).is_multiple_of(conditions.every)
            && self.hit < conditions.times
            && chance.happens(conditions.chance);
        if !hit {
            return None;
        }
        self.hit += 1;
        Some(Decision {
            seed,
            rule: self.rule.to_string(),
            fault: self.rule.fault.clone(),
            select: self.rule.select.clone(),
            dice: chance,
        })
    }
}

#[cfg(test)]
mod tests;
