//! Label selectors, in the syntax of Kubernetes' reference page "Labels and Selectors":
//! `a=b`, `a==b`, `a!=b`, `a in (b,c)`, `a notin (b,c)`, `a`, `!a`, `a>1`, `a<1`, joined by commas.

use rubelet_http_core::status::ApiError;
use serde_json::Value;

/// Requirements that must all hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LabelSelector(Vec<Requirement>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    key: String,
    rule: Rule,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Rule {
    In(Vec<String>),
    /// Holds for objects without the label, too.
    NotIn(Vec<String>),
    Exists,
    Absent,
    Greater(i64),
    Less(i64),
}

impl LabelSelector {
    pub(super) fn parse(text: &str) -> Result<Self, ApiError> {
        let mut parser = Parser { text, rest: text };
        parser.selector().map(Self)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Compares with `metadata.labels`, which may be missing.
    pub(super) fn matches(&self, labels: &Value) -> bool {
        self.0.iter().all(|requirement| {
            let value = labels.get(&requirement.key).and_then(Value::as_str);
            let number = || value.and_then(|value| value.parse::<i64>().ok());
            match &requirement.rule {
                Rule::In(wanted) => value.is_some_and(|value| wanted.iter().any(|w| w == value)),
                Rule::NotIn(unwanted) => {
                    value.is_none_or(|value| unwanted.iter().all(|u| u != value))
                }
                Rule::Exists => value.is_some(),
                Rule::Absent => value.is_none(),
                Rule::Greater(bound) => number().is_some_and(|number| number > *bound),
                Rule::Less(bound) => number().is_some_and(|number| number < *bound),
            }
        })
    }
}

struct Parser<'a> {
    text: &'a str,
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn selector(&mut self) -> Result<Vec<Requirement>, ApiError> {
        let mut requirements = Vec::new();
        self.skip_space();
        while !self.rest.is_empty() {
            requirements.push(self.requirement()?);
            if !self.rest.is_empty() {
                self.expect(",")?;
                if self.rest.is_empty() {
                    return Err(self.wrong("a label name after ','"));
                }
            }
        }
        Ok(requirements)
    }

    fn requirement(&mut self) -> Result<Requirement, ApiError> {
        let absent = self.rest.starts_with('!');
        if absent {
            self.expect("!")?;
        }
        let key = self.key()?;
        let rule = if absent { Rule::Absent } else { self.rule()? };
        Ok(Requirement { key, rule })
    }

    fn rule(&mut self) -> Result<Rule, ApiError> {
        for operator in ["==", "=", "!=", ">", "<", "notin", "in"] {
            if !self.rest.starts_with(operator) {
                continue;
            }
            self.expect(operator)?;
            return Ok(match operator {
                "notin" => Rule::NotIn(self.values()?),
                "in" => Rule::In(self.values()?),
                "!=" => Rule::NotIn(vec![self.value()?.to_owned()]),
                ">" => Rule::Greater(self.integer()?),
                "<" => Rule::Less(self.integer()?),
                _ => Rule::In(vec![self.value()?.to_owned()]),
            });
        }
        match self.rest.chars().next() {
            None | Some(',') => Ok(Rule::Exists),
            Some(_) => Err(self.wrong("one of in, notin, =, ==, !=, >, <")),
        }
    }

    fn values(&mut self) -> Result<Vec<String>, ApiError> {
        self.expect("(")?;
        let mut values = vec![self.value()?.to_owned()];
        while self.rest.starts_with(',') {
            self.expect(",")?;
            values.push(self.value()?.to_owned());
        }
        self.expect(")")?;
        Ok(values)
    }

    /// A label key: an optional DNS prefix and a name, each with letters or digits at both ends.
    fn key(&mut self) -> Result<String, ApiError> {
        let before = self.rest;
        let word = self.word(|c| c == '/');
        let (prefix, name) = match word.split_once('/') {
            Some((prefix, name)) => (Some(prefix), name),
            None => (None, word),
        };
        let valid = prefix.is_none_or(|prefix| is_label_text(prefix, 253) && !prefix.is_empty())
            && is_label_text(name, 63)
            && !name.is_empty();
        if valid {
            return Ok(word.to_owned());
        }
        self.rest = before;
        Err(self.wrong("a label name"))
    }

    fn value(&mut self) -> Result<&'a str, ApiError> {
        let before = self.rest;
        let word = self.word(|_| false);
        if is_label_text(word, 63) {
            return Ok(word);
        }
        self.rest = before;
        Err(self.wrong("a label value"))
    }

    fn integer(&mut self) -> Result<i64, ApiError> {
        let before = self.rest;
        let negative = self.rest.starts_with('-');
        if negative {
            self.rest = &self.rest[1..];
        }
        // With the sign: the smallest number has no positive counterpart.
        let digits = self.word(|_| false);
        let sign = if negative { "-" } else { "" };
        let number = format!("{sign}{digits}").parse::<i64>();
        number.map_err(|_| {
            self.rest = before;
            self.wrong("a whole number")
        })
    }

    fn word(&mut self, also: fn(char) -> bool) -> &'a str {
        let part_of_word =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') || also(c);
        let end = self
            .rest
            .find(|c| !part_of_word(c))
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        self.skip_space();
        word
    }

    fn expect(&mut self, token: &str) -> Result<(), ApiError> {
        self.rest = self
            .rest
            .strip_prefix(token)
            .ok_or_else(|| self.wrong(&format!("{token:?}")))?;
        self.skip_space();
        Ok(())
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn wrong(&self, expected: &str) -> ApiError {
        let found = if self.rest.is_empty() {
            "the end"
        } else {
            self.rest
        };
        ApiError::bad_request(format!(
            "unable to parse label selector {:?}: found {found:?}, expected {expected}",
            self.text
        ))
    }
}

/// True for valid text of a label's name, value or prefix; also for empty text.
fn is_label_text(text: &str, max: usize) -> bool {
    let ends = |c: Option<char>| c.is_none_or(|c| c.is_ascii_alphanumeric());
    text.len() <= max
        && !text.contains('/')
        && ends(text.chars().next())
        && ends(text.chars().next_back())
}

#[cfg(test)]
mod tests;
