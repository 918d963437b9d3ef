//! Reading a rule from its text.

use rubelet_cri::v1::ContainerEventType;
use rubelet_yaml::nearest;

use super::{
    Rule, Select, When,
    fault::{Fault, Stage, number, share},
};
use crate::rpc::{RPCS, Rpc, glob};

/// What is wrong with a rule, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// A rule by itself.
    #[error("rule {rule:?}, column {column}: {problem}")]
    Rule {
        /// The whole rule.
        rule: String,
        /// Where the word begins that is wrong, counted in characters from 1.
        column: usize,
        /// What is wrong.
        problem: String,
    },
    /// A rule in a file.
    #[error("line {line}, column {column}: {problem}")]
    Line {
        /// Which line, from 1.
        line: usize,
        /// Where the word begins that is wrong, counted in characters from 1.
        column: usize,
        /// What is wrong.
        problem: String,
    },
}

/// Names of what may stand before `=` and is no fault.
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

/// The rule, or the column (from 1) and what is wrong there.
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
    let mut when = When::default();
    let mut fault: Option<(usize, Fault)> = None;
    let mut narrowed = None;
    for (column, word) in words {
        let at = |problem| (column, problem);
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        if !KEYS.contains(&key) {
            if let Some((_, earlier)) = &fault {
                return Err(at(format!(
                    "a rule has one fault, and {earlier:?} stands before {word:?}; write two rules"
                )));
            }
            fault = Some((
                column,
                Fault::parse(word).map_err(|told| at(wording(word, told)))?,
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
            "chance" => when.chance = share(value).map_err(at)?,
            "skip" => when.skip = number(value, u64::MAX).map_err(at)?,
            "every" => when.every = number(value, u64::MAX).map_err(at)?,
            _ => when.times = number(value, u64::MAX).map_err(at)?,
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
        when,
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
            "{name} cannot happen to {calls}, but to {}",
            with.join(", ")
        );
        return Err((column, problem));
    }
    let hit = |rpc: &&Rpc| {
        rule.is_for(rpc, Stage::Call) && (!rpc.shape.is_stream() || rule.select.is_empty())
            || rule.is_for(rpc, Stage::Message)
    };
    if !meant.iter().any(hit) {
        let (column, key) = narrowed.unwrap_or((column, "event"));
        let name = rule.fault_name();
        let problem = format!("with {key}= the fault {name} never happens to {calls}");
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
        // The word is a part of the text, so its place is the distance of the two.
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

/// A misspelt key has a value and is no fault either.
fn wording(word: &str, told: String) -> String {
    let key = word.split('=').next().unwrap_or_default();
    match nearest(key, KEYS) {
        Some(near) if word.contains('=') && told.starts_with("there is no fault") => {
            format!("there is neither a fault nor a condition {key:?}; did you mean {near}=?")
        }
        _ => told,
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
        format!("{text:?} is no event; there are CREATED, STARTED, STOPPED, DELETED")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_and_shown_again() {
        for text in [
            "ContainerStatus id=abc hang",
            "* chance=10% delay=10ms..2s",
            "GetContainerEvents event=STOPPED pod=web-* drop",
            "GetContainerEvents fail=UNIMPLEMENTED every=2",
            "List* empty times=1 skip=3",
            "ListContainers id=abc running",
            "CreateContainer lost=DEADLINE_EXCEEDED",
            "ListContainers huge=17MiB",
            "Stream* eof skip=1",
            "* cut chance=0.001",
        ] {
            let rule: Rule = text.parse().unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(rule.to_string(), text);
        }
    }

    #[test]
    fn a_bad_rule_is_told_by_its_word_and_what_to_write() {
        for (text, column, part) in [
            ("", 1, "empty rule"),
            ("ContainerStatus", 16, "no fault"),
            (
                "ContainrStatus hang",
                1,
                "did you mean \"ContainerStatus\"?",
            ),
            ("Nonsense hang", 1, "begins with a call"),
            ("  ContainerStatus hagn", 17, "did you mean \"hang\"?"),
            ("ContainerStatus explode", 17, "there are delay"),
            ("ContainerStatus hang stall", 22, "one fault"),
            (
                "ContainerStatus chace=10% hang",
                17,
                "did you mean chance=?",
            ),
            ("ContainerStatus chance=110% hang", 17, "no share"),
            ("ContainerStatus times=0 hang", 17, "from 1 to"),
            ("ContainerStatus id= hang", 17, "id needs a value"),
            ("ContainerStatus delay", 17, "delay=200ms"),
            ("ContainerStatus delay=2", 17, "200ms, 5s"),
            ("ContainerStatus delay=2s..1s", 17, "shorter"),
            ("ContainerStatus hang=2", 17, "takes no value"),
            ("ContainerStatus fail=OOPS", 17, "UNAVAILABLE"),
            ("ContainerStatus drop", 17, "GetContainerEvents"),
            ("ContainerStatus event=STOPPED hang", 17, "has no events"),
            ("GetContainerEvents event=GONE drop", 20, "STOPPED"),
            ("GetContainerEvents id=a hang", 20, "never happens"),
            ("Version id=a hang", 9, "never happens"),
            ("ListContainers huge=1GiB", 16, "17MiB"),
        ] {
            let error = text.parse::<Rule>().unwrap_err();
            let RuleError::Rule {
                column: found,
                problem,
                ..
            } = &error
            else {
                panic!("{error}");
            };
            assert_eq!(*found, column, "{text}: {error}");
            assert!(problem.contains(part), "{text}: {error}");
        }
    }
}
