//! Parser of rules.

use rubelet_cri::v1::ContainerEventType;
use rubelet_yaml::nearest;

use super::{
    Conditions, Rule, Select,
    fault::{Fault, FaultError, Stage, number, share},
};
use crate::rpc::{RPCS, Rpc, glob};

/// A syntax error in a rule, with its position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// A rule by itself.
    #[error("rule {rule:?}, column {column}: {problem}")]
    Rule {
        /// The whole rule.
        rule: String,
        /// Column of the word with the error, in characters from 1.
        column: usize,
        /// The problem.
        problem: String,
    },
    /// A rule in a file.
    #[error("line {line}, column {column}: {problem}")]
    Line {
        /// Line, from 1.
        line: usize,
        /// Column of the word with the error, in characters from 1.
        column: usize,
        /// The problem.
        problem: String,
    },
}

/// Names of conditions and selectors, before `=`.
const KEYS: [&str; 7] = ["id", "pod", "event", "chance", "skip", "every", "times"];

impl std::str::FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        parse(text).map_err(|(column, problem)| RuleError::Rule {
            rule: text.trim().to_owned(),
            column: column - leading(text),
            problem,
        })
    }
}

fn leading(text: &str) -> usize {
    text.chars().take_while(|c| c.is_whitespace()).count()
}

/// Parses a rule. An error has the column (from 1) and the problem.
pub(super) fn parse(text: &str) -> Result<Rule, (usize, String)> {
    let mut words = words(text);
    let end = text.trim_end().chars().count() + 1;
    let Some((column, calls)) = words.next() else {
        return Err((end, "an empty rule; write a call and a fault".to_owned()));
    };
    let meant: Vec<&Rpc> = RPCS.iter().filter(|rpc| glob(calls, rpc.name)).collect();
    if meant.is_empty() {
        return Err((column, no_call(calls)));
    }
    let mut select = Select::default();
    let mut conditions = Conditions::default();
    let mut fault: Option<(usize, Fault)> = None;
    let mut narrowed = None;
    for (column, word) in words {
        let at = |problem| (column, problem);
        let invalid = |error: FaultError| (column, error.to_string());
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        if !KEYS.contains(&key) {
            if let Some((_, earlier)) = &fault {
                return Err(at(format!(
                    "a rule has one fault, but {earlier:?} comes before {word:?}; write two rules"
                )));
            }
            fault = Some((
                column,
                Fault::parse(word).map_err(|error| at(wording(word, &error)))?,
            ));
            continue;
        }
        if value.is_empty() {
            return Err(at(format!(
                "{key} needs a value, such as {key}={}",
                example(key)
            )));
        }
        match key {
            "id" | "pod" => {
                narrowed = Some((column, key));
                let place = if key == "id" {
                    &mut select.id
                } else {
                    &mut select.pod
                };
                *place = Some(value.to_owned());
            }
            "event" => {
                if !meant.iter().any(|rpc| rpc.name == "GetContainerEvents") {
                    return Err(at(format!("{calls} has no events; GetContainerEvents has")));
                }
                select.event = Some(event(value).map_err(at)?);
            }
            "chance" => conditions.chance = share(value).map_err(invalid)?,
            "skip" => conditions.skip = number(value, u64::MAX).map_err(invalid)?,
            "every" => conditions.every = number(value, u64::MAX).map_err(invalid)?,
            _ => conditions.times = number(value, u64::MAX).map_err(invalid)?,
        }
    }
    let Some((column, fault)) = fault else {
        return Err((
            end,
            "the rule has no fault, such as hang or delay=2s".to_owned(),
        ));
    };
    let rule = Rule {
        text: text.split_whitespace().collect::<Vec<_>>().join(" "),
        calls: calls.to_owned(),
        select,
        conditions,
        fault,
    };
    let happens = |rpc: &Rpc| rule.fault.stage(rpc.shape).is_some();
    if !meant.iter().any(|rpc| happens(rpc)) {
        let name = rule.fault_name();
        let with: Vec<_> = RPCS
            .iter()
            .filter(|rpc| happens(rpc))
            .map(|rpc| rpc.name)
            .collect();
        let problem = format!(
            "{name} does not apply to {calls}, but to {}",
            with.join(", ")
        );
        return Err((column, problem));
    }
    let hit = |rpc: &&Rpc| {
        rule.matches_rpc(rpc, Stage::Call) && (!rpc.shape.is_stream() || rule.select.is_empty())
            || rule.matches_rpc(rpc, Stage::Message)
    };
    if !meant.iter().any(hit) {
        let (column, key) = narrowed.unwrap_or((column, "event"));
        let name = rule.fault_name();
        let problem = format!("with {key}= the fault {name} never applies to {calls}");
        return Err((column, problem));
    }
    Ok(rule)
}

impl Rule {
    fn fault_name(&self) -> String {
        let mut words = self.text.split(' ').skip(1);
        let is_fault = |word: &&str| !KEYS.contains(&word.split('=').next().unwrap_or_default());
        let word = words.find(is_fault).unwrap_or_default();
        word.split('=').next().unwrap_or_default().to_owned()
    }
}

/// The words of a text with the column of each.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split_whitespace().map(move |word| {
        // The word is a slice of the text, so its position is the difference of the pointers.
        let offset = word.as_ptr() as usize - text.as_ptr() as usize;
        (text[..offset].chars().count() + 1, word)
    })
}

fn no_call(name: &str) -> String {
    match nearest(name, RPCS.iter().map(|rpc| rpc.name)) {
        Some(near) => format!("CRI has no call {name:?}; did you mean {near:?}?"),
        None => format!(
            "CRI has no call {name:?}; a rule begins with a call, such as ContainerStatus, List* \
             or *"
        ),
    }
}

/// A misspelled key is not a fault either, but has a value.
fn wording(word: &str, error: &FaultError) -> String {
    let key = word.split('=').next().unwrap_or_default();
    match (error, nearest(key, KEYS)) {
        (FaultError::UnknownName(_), Some(near)) if word.contains('=') => {
            format!("there is neither a fault nor a condition {key:?}; did you mean {near}=?")
        }
        _ => error.to_string(),
    }
}

fn example(key: &str) -> &'static str {
    match key {
        "id" => "3f2a",
        "pod" => "web-*",
        "event" => "STOPPED",
        "chance" => "10%",
        _ => "3",
    }
}

fn event(text: &str) -> Result<ContainerEventType, String> {
    let name = format!("CONTAINER_{}_EVENT", text.to_ascii_uppercase());
    ContainerEventType::from_str_name(&name).ok_or_else(|| {
        format!("{text:?} is not an event; there are CREATED, STARTED, STOPPED, DELETED")
    })
}

#[cfg(test)]
mod tests;
