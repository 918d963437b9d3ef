//! Validation of the configuration.
//!
//! Source of the rules: `pkg/kubelet/apis/config/validation` of Kubernetes 1.36, and the checks that
//! the kubelet makes later, when it starts to use a value. What depends on the machine, such as its
//! cgroup version, is checked by the code that inspects the machine.

mod eviction;
mod images;
mod logging;
mod names;
mod node;
mod pods;
mod resources;
mod rubelet;
mod runtime;
mod server;
mod shutdown;
mod sources;

pub(crate) use names::{label_key_problem, label_value_problem};

use crate::fields::KubeletConfiguration;
use crate::gates::FeatureGates;
use crate::rubelet_options::RubeletOptions;
use std::fmt::Display;
use std::time::Duration;

/// The inputs of the rules.
pub(crate) struct Check<'a> {
    pub(crate) config: &'a KubeletConfiguration,
    pub(crate) rubelet: &'a RubeletOptions,
    pub(crate) gates: &'a FeatureGates,
    /// Whether the field at a path was given.
    pub(crate) given: &'a dyn Fn(&str) -> bool,
}

/// A violated rule.
#[derive(Debug)]
pub(crate) struct Violation {
    /// The fields involved. The error is reported for the one that was given, or else for the
    /// first.
    pub(crate) fields: Vec<String>,
    /// What is allowed, and the value found.
    pub(crate) message: String,
}

type CheckResult = Result<(), Violation>;

/// Checks all rules and returns the first violation.
pub(crate) fn validate(check: &Check<'_>) -> CheckResult {
    sources::validate(check)?;
    server::validate(check)?;
    runtime::validate(check)?;
    pods::validate(check)?;
    images::validate(check)?;
    resources::validate(check)?;
    eviction::validate(check)?;
    node::validate(check)?;
    logging::validate(check)?;
    shutdown::validate(check)?;
    rubelet::validate(check)
}

fn violation<const N: usize>(fields: [&str; N], message: String) -> CheckResult {
    Err(Violation {
        fields: fields.map(str::to_owned).into(),
        message,
    })
}

fn at_least(field: &str, value: impl Into<i64>, least: i64) -> CheckResult {
    let value = value.into();
    match value >= least {
        true => Ok(()),
        false => violation([field], format!("must be {least} or more, is {value}")),
    }
}

fn range(field: &str, value: impl Into<i64>, least: i64, most: i64) -> CheckResult {
    let value = value.into();
    match (least..=most).contains(&value) {
        true => Ok(()),
        false => violation(
            [field],
            format!("must be from {least} to {most}, is {value}"),
        ),
    }
}

fn one_of(field: &str, value: &str, allowed: &[&str]) -> CheckResult {
    match allowed.contains(&value) {
        true => Ok(()),
        false => violation(
            [field],
            format!("must be {}, is {value:?}", alternatives(allowed)),
        ),
    }
}

fn not_zero(field: &str, value: Duration) -> CheckResult {
    match value.is_zero() {
        false => Ok(()),
        true => violation([field], "must be more than 0s".to_owned()),
    }
}

fn ip_address(field: &str, value: &str) -> CheckResult {
    match value.parse::<core::net::IpAddr>() {
        Ok(_) => Ok(()),
        Err(_) => violation([field], format!("must be an IP address, is {value:?}")),
    }
}

/// `"a"`, `"a" or "b"`, `"a", "b" or "c"`.
fn alternatives<T: Display>(allowed: &[T]) -> String {
    let quoted: Vec<String> = allowed.iter().map(|value| format!("\"{value}\"")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}
