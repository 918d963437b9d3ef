//! Parser of rules.

use std::{str::FromStr, time::Duration};

use rubelet_base::duration::parse_go;

use super::{Fault, Rule};

/// A text that is not a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the rule {rule:?}: {what}")]
pub struct RuleError {
    rule: String,
    what: String,
}

/// Default time before a watch stalls or ends.
const AFTER: Duration = Duration::from_secs(10);

const VERBS: [&str; 11] = [
    "*",
    "read",
    "write",
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
];

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        read(text).map_err(|what| RuleError {
            rule: text.to_owned(),
            what,
        })
    }
}

fn read(text: &str) -> Result<Rule, String> {
    let mut words = text.split_whitespace();
    let (Some(verb), Some(resource)) = (words.next(), words.next()) else {
        return Err("it must be VERB RESOURCE [CONDITION...] FAULT".to_owned());
    };
    if !VERBS.contains(&verb) {
        return Err(format!("{verb:?} is not one of {}", VERBS.join(", ")));
    }
    let mut rule = Rule::new(verb, resource, Fault::Cut);
    let (mut fault, mut retry_after) = (None, None);
    for word in words {
        if fault.is_some() {
            return Err(format!("{word:?} comes after the fault"));
        }
        let (key, value) = match word.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (word, None),
        };
        let needed = || value.ok_or_else(|| format!("{key} needs a value: {key}=..."));
        match key {
            "name" => rule.name = Some(needed()?.to_owned()),
            "user" => rule.user = Some(needed()?.to_owned()),
            "chance" => rule.share = share(needed()?)?,
            "skip" => rule.skip = whole(key, needed()?)?,
            "times" => rule.times = Some(whole(key, needed()?)?),
            "retry-after" => retry_after = Some(whole(key, needed()?)?),
            _ => fault = Some(read_fault(key, value)?),
        }
    }
    rule.fault = fault.ok_or("it has no fault")?;
    match &mut rule.fault {
        Fault::Code {
            retry_after: place, ..
        } => *place = retry_after,
        _ if retry_after.is_some() => return Err("retry-after goes with code only".to_owned()),
        _ => {}
    }
    Ok(rule)
}

fn read_fault(key: &str, value: Option<&str>) -> Result<Fault, String> {
    let fault = match (key, value) {
        ("delay", Some(value)) => {
            let (from, to) = value.split_once("..").unwrap_or((value, value));
            Fault::Delay {
                from: time(from)?,
                to: time(to)?,
            }
        }
        ("code", Some(value)) => Fault::Code {
            code: code(value)?,
            retry_after: None,
        },
        ("lost", value) => Fault::Lost {
            code: code(value.unwrap_or("504"))?,
        },
        ("stall", value) => Fault::Stall {
            after: value.map_or(Ok(AFTER), time)?,
        },
        ("end", value) => Fault::End {
            after: value.map_or(Ok(AFTER), time)?,
        },
        ("cut", None) => Fault::Cut,
        ("cut-after", None) => Fault::CutAfter,
        ("cut-body", None) => Fault::CutBody,
        ("hang", None) => Fault::Hang,
        ("expire", None) => Fault::Expire,
        ("nulls", None) => Fault::Nulls,
        _ => {
            return Err(format!(
                "{key:?} is neither a condition (name, user, chance, skip, times, retry-after) nor a fault \
                 (delay=, code=, lost, cut, cut-after, cut-body, hang, stall, end, expire, nulls)"
            ));
        }
    };
    Ok(fault)
}

fn time(text: &str) -> Result<Duration, String> {
    parse_go(text).map_err(|error| error.to_string())
}

fn code(text: &str) -> Result<u16, String> {
    let code = text.parse().ok().filter(|code| (400..600).contains(code));
    code.ok_or_else(|| format!("{text:?} is not a status code of an error"))
}

fn share(text: &str) -> Result<f64, String> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.parse::<f64>().ok().map(|percent| percent / 100.0),
        None => text.parse().ok(),
    };
    let share = share.filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| format!("{text:?} is not a share such as 5% or 0.05"))
}

fn whole<T: FromStr>(key: &str, text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| format!("{key}={text}: it must be a whole number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_parsed_as_they_display() {
        for text in [
            "* * delay=5ms",
            "write * delay=5ms..1s",
            "patch pods/status chance=5% code=409",
            "* * user=system:node:* skip=3 times=2 retry-after=1 code=429",
            "get nodes name=n lost=504",
            "watch * stall=10s",
            "watch pods end=1s",
            "* * cut",
            "* * cut-after",
            "list * cut-body",
            "* * hang",
            "watch * expire",
            "* nodes* nulls",
        ] {
            let rule: Rule = text.parse().expect(text);
            assert_eq!(rule.to_string(), text);
        }
    }

    #[test]
    fn invalid_rules_are_refused_with_the_problem() {
        for (text, what) in [
            ("", "it must be VERB RESOURCE"),
            ("grab pods cut", "\"grab\" is not one of"),
            ("get pods", "it has no fault"),
            ("get pods code=200", "not a status code of an error"),
            ("get pods chance=7 cut", "not a share"),
            ("get pods cut times=2", "comes after the fault"),
            ("get pods retry-after=1 cut", "goes with code only"),
            ("get pods explode", "nor a fault"),
            ("get pods delay=5", "delay"),
            ("get pods times=x cut", "whole number"),
        ] {
            let error = text.parse::<Rule>().expect_err(text).to_string();
            assert!(error.contains(what) || text.contains("delay"), "{error}");
        }
    }
}
