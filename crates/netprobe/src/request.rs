//! A probe as a document: the agent runs it in the network namespace of a pod, and answers with a line
//! of JSON for each report.

use std::{net::SocketAddr, ops::ControlFlow, os::fd::BorrowedFd, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    check::{CheckInputs, check, dns::is_name, run::CheckError},
    millis,
    packet::Family,
    path::{PathInputs, follow},
    ping::{
        PingOptions, PingTarget,
        driver::{MOST_TARGETS, PingError},
        options::MOST_DATA,
        ping, search_mtu,
    },
    sockets::OpenSocket,
    trace::{TraceOptions, TraceTarget, driver::TraceError, trace},
};

/// The longest name of a target, as DNS has it.
const LONGEST_NAME: usize = 253;

/// A probe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "probe", rename_all = "camelCase", deny_unknown_fields)]
pub enum ProbeRequest {
    /// Echo requests to one target or to several.
    #[serde(rename_all = "camelCase")]
    Ping {
        /// The targets: addresses or names.
        targets: Vec<String>,
        /// The family of addresses; absent for any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        family: Option<Family>,
        /// The options.
        #[serde(default)]
        options: PingOptions,
    },
    /// A search for the path MTU.
    #[serde(rename_all = "camelCase")]
    PathMtu {
        /// The target: an address or a name.
        target: String,
        /// The family of addresses; absent for any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        family: Option<Family>,
        /// Timeout of a packet.
        #[serde(with = "millis", rename = "timeoutMs")]
        timeout: Duration,
    },
    /// A trace.
    #[serde(rename_all = "camelCase")]
    Trace {
        /// The target: an address or a name.
        target: String,
        /// The family of addresses; absent for any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        family: Option<Family>,
        /// The options.
        #[serde(default)]
        options: TraceOptions,
    },
    /// The usual questions about the network of a pod.
    #[serde(rename_all = "camelCase")]
    Check {
        /// A name that its nameservers must know; that of the API server's Service if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// A host beyond the node, as an address or a name; the node's gateway if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outside: Option<String>,
    },
    /// Locates where packets to a host stop on this machine.
    #[serde(rename_all = "camelCase")]
    Path {
        /// The target: an address or a name, or a pod of this node as `pod/NAMESPACE/NAME`.
        target: String,
        /// The family of addresses; absent for any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        family: Option<Family>,
    },
}

/// Input of a probe besides its document.
#[derive(Debug)]
pub enum ProbeInputs {
    /// Nothing.
    None,
    /// Input of a check.
    Check(Box<CheckInputs>),
    /// The interfaces on the way.
    Path(PathInputs),
}

/// Why a document is not a probe.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// It has no target, or too many.
    #[error("{0} targets: a probe has 1 to {MOST_TARGETS}")]
    Targets(usize),
    /// A target can't be a host.
    #[error("a target has {0} bytes: the name of a host has 1 to {LONGEST_NAME}")]
    Name(usize),
    /// A name that DNS can't have.
    #[error("name: {0:?} cannot be a name of DNS")]
    NotDns(String),
    /// A packet would be too long.
    #[error("options.size: {0} is more than {MOST_DATA} bytes")]
    Size(usize),
}

/// Why a probe failed.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// A ping, or a search for a path MTU.
    #[error(transparent)]
    Ping(#[from] PingError),
    /// A trace.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A check.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// A check or a path without a pod.
    #[error("a check or a path starts in a pod: name one")]
    NoPod,
}

impl ProbeRequest {
    /// Its targets, which have to be resolved.
    #[must_use]
    pub fn targets(&self) -> &[String] {
        match self {
            Self::Ping { targets, .. } => targets,
            Self::PathMtu { target, .. }
            | Self::Trace { target, .. }
            | Self::Path { target, .. } => std::slice::from_ref(target),
            Self::Check { outside, .. } => outside.as_slice(),
        }
    }

    /// The family of addresses.
    #[must_use]
    pub fn family(&self) -> Option<Family> {
        match self {
            Self::Ping { family, .. }
            | Self::PathMtu { family, .. }
            | Self::Trace { family, .. }
            | Self::Path { family, .. } => *family,
            Self::Check { .. } => None,
        }
    }

    /// Checks what can be checked without a network.
    ///
    /// # Errors
    /// It can't be run.
    pub fn check(&self) -> Result<(), RequestError> {
        let targets = self.targets();
        let (least, name) = match self {
            Self::Check { name, .. } => (0, name.as_slice()),
            _ => (1, [].as_slice()),
        };
        if targets.len() < least || targets.len() > MOST_TARGETS {
            return Err(RequestError::Targets(targets.len()));
        }
        let names = targets.iter().chain(name);
        let bad = names
            .map(String::len)
            .find(|length| !(1..=LONGEST_NAME).contains(length));
        if let Some(length) = bad {
            return Err(RequestError::Name(length));
        }
        match self {
            Self::Ping { options, .. } if options.size > MOST_DATA => {
                Err(RequestError::Size(options.size))
            }
            Self::Check {
                name: Some(name), ..
            } if !is_name(name) => Err(RequestError::NotDns(name.clone())),
            _ => Ok(()),
        }
    }

    /// Runs it until it is done, `stop` is readable or closed, or `line` breaks. `addresses` are those
    /// of its targets; further ones are ignored. `inputs` are those of its kind. Blocks the thread.
    ///
    /// # Errors
    /// A socket can't be opened, or the kernel refuses to send. Nothing was reported before that in
    /// the first case.
    pub fn run(
        &self,
        addresses: &[SocketAddr],
        inputs: ProbeInputs,
        open: &dyn OpenSocket,
        stop: BorrowedFd<'_>,
        line: &mut dyn FnMut(String) -> ControlFlow<()>,
    ) -> Result<(), ProbeError> {
        let named = |(name, address): (&String, &SocketAddr)| PingTarget {
            name: name.clone(),
            address: *address,
        };
        let targets: Vec<PingTarget> = self.targets().iter().zip(addresses).map(named).collect();
        match self {
            Self::Ping { options, .. } => {
                let mut report = |event| line(json_line(&event));
                ping(&targets, options, open, stop, &mut report)?;
            }
            Self::PathMtu { timeout, .. } => {
                let mut report = |event| line(json_line(&event));
                for target in &targets {
                    search_mtu(target, *timeout, open, stop, &mut report)?;
                }
            }
            Self::Trace { options, .. } => {
                let mut report = |event| line(json_line(&event));
                for PingTarget { name, address } in targets {
                    trace(
                        &TraceTarget { name, address },
                        options,
                        open,
                        stop,
                        &mut report,
                    )?;
                }
            }
            Self::Check { .. } => {
                let ProbeInputs::Check(inputs) = inputs else {
                    return Err(ProbeError::NoPod);
                };
                check(&inputs, open, stop, &mut |event| line(json_line(&event)))?;
            }
            Self::Path { .. } => {
                let ProbeInputs::Path(inputs) = inputs else {
                    return Err(ProbeError::NoPod);
                };
                follow(inputs, open, stop, &mut |event| line(json_line(&event)))?;
            }
        }
        Ok(())
    }
}

/// A report as a line of JSON with its line feed.
///
/// # Panics
/// The report can't be written as JSON; those of this crate can.
pub fn json_line(event: &impl Serialize) -> String {
    let mut line = serde_json::to_string(event).expect("a report can be written as JSON");
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_may_leave_out_what_has_a_default() {
        let text = r#"{"probe": "ping", "targets": ["10.0.0.1"], "options": {"count": 3, "intervalMs": 200}}"#;
        let request: ProbeRequest = serde_json::from_str(text).unwrap();
        let expected = ProbeRequest::Ping {
            targets: vec!["10.0.0.1".to_owned()],
            family: None,
            options: PingOptions {
                count: Some(3),
                interval: Duration::from_millis(200),
                ..PingOptions::default()
            },
        };
        assert_eq!(request, expected);
        request.check().unwrap();
        let trace: ProbeRequest =
            serde_json::from_str(r#"{"probe": "trace", "target": "web"}"#).unwrap();
        assert_eq!(trace.targets(), ["web"]);
        for text in [
            "{}",
            r#"{"probe": "scan", "target": "web"}"#,
            r#"{"probe": "ping", "targets": ["a"], "options": {"colour": 1}}"#,
            r#"{"probe": "ping", "targets": ["a"], "options": {"intervalMs": -1}}"#,
            r#"{"probe": "trace", "target": "a", "options": {"max": 300}}"#,
        ] {
            assert!(
                serde_json::from_str::<ProbeRequest>(text).is_err(),
                "{text}"
            );
        }
    }

    #[test]
    fn documents_survive_json() {
        let ping = ProbeRequest::Ping {
            targets: vec!["a".to_owned(), "b".to_owned()],
            family: Some(Family::V6),
            options: PingOptions {
                deadline: Some(Duration::from_millis(1500)),
                flood: true,
                ..PingOptions::default()
            },
        };
        let mtu = ProbeRequest::PathMtu {
            target: "a".to_owned(),
            family: None,
            timeout: Duration::from_secs(1),
        };
        let trace = ProbeRequest::Trace {
            target: "a".to_owned(),
            family: Some(Family::V4),
            options: TraceOptions {
                rounds: Some(0),
                ..TraceOptions::default()
            },
        };
        let check = ProbeRequest::Check {
            name: Some("web.example".to_owned()),
            outside: None,
        };
        for request in [ping, mtu, trace, check] {
            let json = serde_json::to_string(&request).unwrap();
            assert_eq!(
                serde_json::from_str::<ProbeRequest>(&json).unwrap(),
                request
            );
        }
    }

    #[test]
    fn what_cannot_be_run_is_refused() {
        let of = |targets: Vec<String>, size| ProbeRequest::Ping {
            targets,
            family: None,
            options: PingOptions {
                size,
                ..PingOptions::default()
            },
        };
        for (targets, size, message) in [
            (Vec::new(), 56, "0 targets: a probe has 1 to 256"),
            (vec!["a".to_owned(); 257], 56, "257 targets"),
            (vec![String::new()], 56, "a target has 0 bytes"),
            (vec!["a".repeat(254)], 56, "a target has 254 bytes"),
            (vec!["a".to_owned()], 65_508, "options.size: 65508"),
        ] {
            let error = of(targets, size).check().unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
        let check = |name: &str| ProbeRequest::Check {
            name: Some(name.to_owned()),
            outside: None,
        };
        check("web.example.").check().unwrap();
        let error = check("a..b").check().unwrap_err().to_string();
        assert_eq!(error, "name: \"a..b\" cannot be a name of DNS");
    }
}
