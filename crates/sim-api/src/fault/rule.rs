//! One rule: which requests, when, and what happens to them.

use std::{fmt, time::Duration};

use crate::{route::Target, user::User};

/// What happens to a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// It is answered later.
    Delay {
        /// At least so much later.
        from: Duration,
        /// At most.
        to: Duration,
    },
    /// It is not done and answered with an error.
    Code {
        /// The status code.
        code: u16,
        /// The header of that name, in seconds.
        retry_after: Option<u32>,
    },
    /// It is done and answered with an error.
    Lost {
        /// The status code.
        code: u16,
    },
    /// It is not done and its connection closed.
    Cut,
    /// It is done and its connection closed before the answer.
    CutAfter,
    /// It is done and its connection closed in the middle of the answer.
    CutBody,
    /// It is not done and never answered; other requests of the connection are.
    Hang,
    /// A watch that sends nothing more after that time, and does not end either.
    Stall {
        /// After this time.
        after: Duration,
    },
    /// A watch that ends well after that time.
    End {
        /// After this time.
        after: Duration,
    },
    /// A watch or list that is told that its resource version is too old.
    Expire,
    /// It is done, and the answer has a null for all that is empty or absent.
    Nulls,
}

/// A fault, and for which requests. Written as `VERB RESOURCE [CONDITION...] FAULT`.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// A verb of the API, `read`, `write` or `*`.
    pub verb: String,
    /// A plural, perhaps with a subresource; each `*` stands for any text.
    pub resource: String,
    /// Only objects of that name.
    pub name: Option<String>,
    /// Only requests of that user.
    pub user: Option<String>,
    /// Of the requests that are meant, from 0 to 1.
    pub share: f64,
    /// Not the first so many.
    pub skip: u64,
    /// At most so many.
    pub times: Option<u64>,
    /// What happens.
    pub fault: Fault,
}

impl Rule {
    /// A fault of every request of that verb and resource.
    #[must_use]
    pub fn new(verb: &str, resource: &str, fault: Fault) -> Self {
        Self {
            verb: verb.to_owned(),
            resource: resource.to_owned(),
            name: None,
            user: None,
            share: 1.0,
            skip: 0,
            times: None,
            fault,
        }
    }

    /// The same for that share of the requests.
    #[must_use]
    pub fn share(self, share: f64) -> Self {
        Self { share, ..self }
    }

    /// The same, so many times at most.
    #[must_use]
    pub fn times(self, times: u64) -> Self {
        Self {
            times: Some(times),
            ..self
        }
    }

    /// True for a request that the rule is about.
    pub(super) fn means(&self, verb: &str, target: &Target, user: &User) -> bool {
        let is_read = ["get", "list", "watch"].contains(&verb);
        let verb_fits = match self.verb.as_str() {
            "*" => true,
            "read" => is_read,
            "write" => !is_read,
            wanted => wanted == verb,
        };
        let is_stream = matches!(self.fault, Fault::Stall { .. } | Fault::End { .. });
        let can_expire = ["list", "watch"].contains(&verb);
        verb_fits
            && (!is_stream || verb == "watch")
            && (self.fault != Fault::Expire || can_expire)
            && fits(&self.resource, &target.resource())
            && self
                .name
                .as_deref()
                .is_none_or(|name| name == target.name())
            && self
                .user
                .as_ref()
                .is_none_or(|wanted| fits(wanted, &user.name))
    }
}

/// True when the text fits a pattern in which each `*` stands for any text.
fn fits(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match text.find(part) {
            Some(at) => text = &text[at + part.len()..],
            None => return false,
        }
    }
    text.ends_with(last)
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        for (key, value) in [("name", &self.name), ("user", &self.user)] {
            if let Some(value) = value {
                write!(f, " {key}={value}")?;
            }
        }
        if self.share < 1.0 {
            write!(f, " chance={}%", self.share * 100.0)?;
        }
        if self.skip > 0 {
            write!(f, " skip={}", self.skip)?;
        }
        if let Some(times) = self.times {
            write!(f, " times={times}")?;
        }
        match &self.fault {
            Fault::Delay { from, to } if from == to => write!(f, " delay={from:?}"),
            Fault::Delay { from, to } => write!(f, " delay={from:?}..{to:?}"),
            Fault::Code { code, retry_after } => {
                if let Some(seconds) = retry_after {
                    write!(f, " retry-after={seconds}")?;
                }
                write!(f, " code={code}")
            }
            Fault::Lost { code } => write!(f, " lost={code}"),
            Fault::Cut => f.write_str(" cut"),
            Fault::CutAfter => f.write_str(" cut-after"),
            Fault::CutBody => f.write_str(" cut-body"),
            Fault::Hang => f.write_str(" hang"),
            Fault::Stall { after } => write!(f, " stall={after:?}"),
            Fault::End { after } => write!(f, " end={after:?}"),
            Fault::Expire => f.write_str(" expire"),
            Fault::Nulls => f.write_str(" nulls"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    #[test]
    fn patterns_fit_whole_texts() {
        for (pattern, text, fit) in [
            ("*", "pods", true),
            ("pods", "pods/status", false),
            ("pods*", "pods/status", true),
            ("*/status", "nodes/status", true),
            ("p*s/s*s", "pods/status", true),
            ("p*x", "pods", false),
        ] {
            assert_eq!(fits(pattern, text), fit, "{pattern} {text}");
        }
    }

    #[test]
    fn a_rule_means_its_own_requests_only() {
        let pods = Kind::of("pods").unwrap();
        let mut target = Target::object(pods, "a", "web");
        target.subresource = Some("status".to_owned());
        let node = User::node("n");
        for (rule, verb, means) in [
            ("write pods/status code=500", "patch", true),
            ("read pods/status code=500", "patch", false),
            ("* pods code=500", "patch", false),
            ("* * name=db code=500", "patch", false),
            ("* * user=system:node:* code=500", "patch", true),
            ("* * user=admin code=500", "patch", false),
            ("* * stall=1s", "patch", false),
            ("* * expire", "list", true),
        ] {
            let rule: Rule = rule.parse().unwrap();
            assert_eq!(rule.means(verb, &target, &node), means, "{rule}");
        }
    }
}
