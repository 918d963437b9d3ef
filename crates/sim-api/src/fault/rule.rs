//! A rule: requests, conditions and a fault.

use std::{fmt, time::Duration};

use crate::{route::Target, user::User};

/// A fault of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// The response is delayed.
    Delay {
        /// Minimum delay.
        from: Duration,
        /// Maximum delay.
        to: Duration,
    },
    /// The request is not executed and fails with an error.
    Code {
        /// The status code.
        code: u16,
        /// Value of the header Retry-After, in seconds.
        retry_after: Option<u32>,
    },
    /// The request is executed and fails with an error.
    Lost {
        /// The status code.
        code: u16,
    },
    /// The request is not executed and the connection is closed.
    Cut,
    /// The request is executed and the connection is closed before the response.
    CutAfter,
    /// The request is executed and the connection is closed in the middle of the response.
    CutBody,
    /// The request is not executed and has no response; other requests of the connection are
    /// served.
    Hang,
    /// The watch sends nothing after this time, and does not end.
    Stall {
        /// After this time.
        after: Duration,
    },
    /// The watch ends without an error after this time.
    End {
        /// After this time.
        after: Duration,
    },
    /// The watch or list fails because its resource version is too old.
    Expire,
    /// The request is executed, and the response has null for everything that is empty or absent.
    Nulls,
}

/// A fault, and the requests to which it applies. Syntax: `VERB RESOURCE [CONDITION...] FAULT`.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// A verb of the API, `read`, `write` or `*`.
    pub verb: String,
    /// A plural, optionally with a subresource; each `*` matches any text.
    pub resource: String,
    /// Only objects of this name.
    pub name: Option<String>,
    /// Only requests of this user.
    pub user: Option<String>,
    /// Share of the matching requests, from 0 to 1.
    pub share: f64,
    /// Number of matching requests that are skipped at first.
    pub skip: u64,
    /// Maximum number of faults.
    pub times: Option<u64>,
    /// The fault.
    pub fault: Fault,
}

impl Rule {
    /// A fault of all requests of this verb and resource.
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

    /// The same for this share of the requests.
    #[must_use]
    pub fn share(self, share: f64) -> Self {
        Self { share, ..self }
    }

    /// The same, at most this many times.
    #[must_use]
    pub fn times(self, times: u64) -> Self {
        Self {
            times: Some(times),
            ..self
        }
    }

    /// Whether the rule applies to a request.
    pub(super) fn matches(&self, verb: &str, target: &Target, user: &User) -> bool {
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
            && glob(&self.resource, &target.resource())
            && self
                .name
                .as_deref()
                .is_none_or(|name| name == target.name())
            && self
                .user
                .as_ref()
                .is_none_or(|wanted| glob(wanted, &user.name))
    }
}

/// Whether a text matches a pattern in which each `*` matches any text.
fn glob(pattern: &str, text: &str) -> bool {
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
    fn patterns_match_whole_texts() {
        for (pattern, text, fit) in [
            ("*", "pods", true),
            ("pods", "pods/status", false),
            ("pods*", "pods/status", true),
            ("*/status", "nodes/status", true),
            ("p*s/s*s", "pods/status", true),
            ("p*x", "pods", false),
        ] {
            assert_eq!(glob(pattern, text), fit, "{pattern} {text}");
        }
    }

    #[test]
    fn a_rule_applies_to_its_own_requests_only() {
        let pods = Kind::of("pods").unwrap();
        let mut target = Target::object(pods, "a", "web");
        target.subresource = Some("status".to_owned());
        let node = User::node("n");
        for (rule, verb, matches) in [
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
            assert_eq!(rule.matches(verb, &target, &node), matches, "{rule}");
        }
    }
}
