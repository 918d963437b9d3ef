//! Parses the command line as `pflag` does.
//!
//! Source of the rule: the documentation of `github.com/spf13/pflag`, and `WordSepNormalizeFunc` of
//! `k8s.io/component-base`: `--name value`, `--name=value`, `_` for `-`, a boolean may have no value,
//! `-v2`, `-v=2` and `-v 2`, and the last value wins.

use super::{Flag, FlagKind, Flags, labels, table, value};
use serde_json::Value;

/// Why a command line is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlagError {
    /// No flag has this name.
    #[error("unknown flag {given}{}", nearest.map_or(String::new(), |name| {
        format!("; did you mean --{name}?")
    }))]
    Unknown {
        /// The flag with its dashes, without its value.
        given: String,
        /// Name of the flag that may have been meant.
        nearest: Option<&'static str>,
    },
    /// The command line ends where a value is expected.
    #[error("--{name} needs a value: {}", kind.example())]
    NoValue {
        /// Name of the flag.
        name: &'static str,
        /// The type of its values.
        kind: FlagKind,
    },
    /// The value has the wrong type, or is not allowed.
    #[error("--{name}={value}: {problem}")]
    BadValue {
        /// Name of the flag.
        name: &'static str,
        /// The value that was given.
        value: String,
        /// The problem with it.
        problem: String,
    },
    /// An argument that is not a flag.
    #[error("unexpected argument {0:?}; every option begins with --")]
    Positional(String),
}

/// Reads the arguments after the program's name.
///
/// # Errors
/// A flag is unknown, lacks its value or has an invalid one. If help or the version is requested,
/// flags that contradict each other are not an error.
pub fn parse_flags(args: impl Iterator<Item = String>) -> Result<Flags, FlagError> {
    let mut args = args;
    let mut flags = Flags::default();
    while let Some(arg) = args.next() {
        if arg == "--" {
            match args.next() {
                Some(rest) => return Err(FlagError::Positional(rest)),
                None => break,
            }
        } else if let Some(rest) = arg.strip_prefix("--") {
            long(&mut flags, rest, &mut args)?;
        } else if let Some(rest) = arg.strip_prefix('-').filter(|rest| !rest.is_empty()) {
            short(&mut flags, rest, &mut args)?;
        } else {
            return Err(FlagError::Positional(arg));
        }
    }
    if !flags.help() && !flags.version() {
        check(&flags)?;
    }
    Ok(flags)
}

fn long(
    flags: &mut Flags,
    rest: &str,
    args: &mut impl Iterator<Item = String>,
) -> Result<(), FlagError> {
    let (given, text) = match rest.split_once('=') {
        Some((name, text)) => (name, Some(text)),
        None => (rest, None),
    };
    let name = given.replace('_', "-");
    let flag = table::find(&name).ok_or_else(|| unknown(format!("--{given}"), &name))?;
    match text {
        Some(text) => set(flags, flag, text),
        None if flag.kind.value_is_optional() => set(flags, flag, "true"),
        None => set(flags, flag, &next(flag, args)?),
    }
}

/// `-v2`, `-v=2`, `-v 2`, `-h`. No other flag has a short form.
fn short(
    flags: &mut Flags,
    rest: &str,
    args: &mut impl Iterator<Item = String>,
) -> Result<(), FlagError> {
    let name = match rest.chars().next() {
        Some('v') => "v",
        Some('h') => "help",
        _ => "",
    };
    let long_name = rest.split('=').next().unwrap_or_default().replace('_', "-");
    let is_long = table::find(&long_name).is_some() && long_name.len() > 1;
    let Some(flag) = table::find(name).filter(|_| !is_long) else {
        return Err(unknown(
            format!("-{}", rest.split('=').next().unwrap_or_default()),
            &long_name,
        ));
    };
    let text = &rest[1..];
    match text.strip_prefix('=').unwrap_or(text) {
        "" if flag.kind.value_is_optional() => set(flags, flag, "true"),
        "" => set(flags, flag, &next(flag, args)?),
        text => set(flags, flag, text),
    }
}

fn next(flag: &'static Flag, args: &mut impl Iterator<Item = String>) -> Result<String, FlagError> {
    args.next().ok_or(FlagError::NoValue {
        name: flag.name,
        kind: flag.kind,
    })
}

fn set(flags: &mut Flags, flag: &'static Flag, text: &str) -> Result<(), FlagError> {
    let value =
        value::read(flag.kind, text).map_err(|problem| bad(flag, text, problem.to_string()))?;
    match flags.given.get_mut(flag.name) {
        Some(before) => value::combine(flag.kind, before, value),
        None => {
            flags.given.insert(flag.name, value);
        }
    }
    Ok(())
}

fn bad(flag: &'static Flag, text: &str, problem: String) -> FlagError {
    FlagError::BadValue {
        name: flag.name,
        value: text.to_owned(),
        problem,
    }
}

fn unknown(given: String, name: &str) -> FlagError {
    let candidates = table::all().map(|flag| flag.name);
    FlagError::Unknown {
        given,
        nearest: rubelet_yaml::nearest(name, candidates),
    }
}

fn check(flags: &Flags) -> Result<(), FlagError> {
    for (flag, value) in flags.iter() {
        let problem = match (flag.name, value) {
            ("node-labels", labels) => labels::problem(labels),
            ("cloud-provider", Value::String(name))
                if !matches!(name.as_str(), "" | "external") =>
            {
                Some("must be external or empty; in-tree cloud providers have been removed".to_owned())
            }
            ("exit-on-lock-contention", Value::Bool(true)) if flags.lock_file().is_none() => {
                Some("needs --lock-file".to_owned())
            }
            ("bootstrap-kubeconfig", Value::String(path))
                if !path.is_empty() && flags.kubeconfig().is_none() =>
            {
                Some("needs --kubeconfig, the file to which the kubeconfig with the certificate is written".to_owned())
            }
            _ => None,
        };
        if let Some(problem) = problem {
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Object(pairs) => {
                    let pair = |(key, value): (&String, &Value)| {
                        format!("{key}={}", value.as_str().unwrap_or_default())
                    };
                    pairs.iter().map(pair).collect::<Vec<_>>().join(",")
                }
                other => other.to_string(),
            };
            return Err(bad(flag, &text, problem));
        }
    }
    Ok(())
}
