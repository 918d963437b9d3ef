//! The decision: what goes wrong with a call, or with a message of a stream.

use crate::{
    dice::Dice,
    rpc::Rpc,
    rule::{Fault, Rule, Select, Stage},
    subject::Subject,
};

/// A seed, rules in the order in which they are asked, and how often each was asked and hit.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    seed: u64,
    rules: Vec<Counted>,
}

#[derive(Debug, Clone)]
struct Counted {
    rule: Rule,
    /// How many calls or messages it meant so far.
    meant: u64,
    /// How many of those it hit.
    hit: u64,
}

/// What goes wrong.
#[derive(Debug, Clone)]
pub(crate) struct Decision {
    pub(crate) seed: u64,
    pub(crate) rule: String,
    pub(crate) fault: Fault,
    pub(crate) select: Select,
    /// For what the fault leaves to chance.
    pub(crate) dice: Dice,
}

impl Rules {
    /// These rules; `seed` decides all that they leave to chance.
    #[must_use]
    pub fn new(seed: u64, rules: Vec<Rule>) -> Self {
        let counted = |rule| Counted {
            rule,
            meant: 0,
            hit: 0,
        };
        Self {
            seed,
            rules: rules.into_iter().map(counted).collect(),
        }
    }

    /// No rules: everything passes.
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

    /// Whether lists must be read to know whose pod an identifier is.
    pub(crate) fn name_pods(&self) -> bool {
        self.iter().any(|rule| rule.select.names_pods())
    }

    /// What goes wrong here: the fault of the first rule that means this and whose conditions hold.
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
                counted.rule.is_for(rpc, stage) && counted.rule.takes(rpc, subject)
            })
            .find_map(|(place, counted)| counted.decide(seed, place))
    }
}

impl Counted {
    fn decide(&mut self, seed: u64, place: usize) -> Option<Decision> {
        let when = self.rule.when;
        let count = self.meant;
        self.meant += 1;
        let dice = Dice::for_decision(seed, place, count);
        let mut chance = dice.clone();
        let hit = count >= when.skip
            && (count - when.skip).is_multiple_of(when.every)
            && self.hit < when.times
            && chance.happens(when.chance);
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
