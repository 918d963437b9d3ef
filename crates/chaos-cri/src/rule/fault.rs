//! Faults, their syntax, and the calls to which each can be applied.

use std::{ops::Range, time::Duration};

use rubelet_base::duration::parse_go;
use rubelet_yaml::nearest;

use crate::{code::Code, rpc::Shape};

/// Maximum delay or freeze.
const MAX_DURATION: Duration = Duration::from_secs(24 * 3600);
/// Maximum number of messages that are held or sent again at once.
const MAX_MESSAGES: u64 = 100_000;
/// Default size, in bytes, to which a list is padded: more than any client accepts.
const DEFAULT_PADDING: u64 = 17 * 1024 * 1024;

/// Why a word is not a fault, or a value is not valid, with what to write instead.
#[derive(Debug, thiserror::Error)]
pub(super) enum FaultError {
    /// There is no fault of this name.
    #[error("{0}")]
    UnknownName(String),
    /// The value after `=` is missing, invalid or too large.
    #[error("{0}")]
    Value(String),
}

/// A fault. `chaos-cri --help` describes each.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fault {
    /// Range, in milliseconds.
    Delay(Range<u64>),
    Hang,
    Stall,
    Fail(Code),
    /// Without a code there is no response.
    Lost(Option<Code>),
    Eof,
    Reset,
    End,
    Withhold,
    Cut,
    Freeze(Duration),
    Empty,
    /// Share of missing items, in millionths.
    Partial(u32),
    /// Bytes.
    Huge(usize),
    Running,
    NilSandbox,
    WrongUid(String),
    Drop,
    Duplicate(u64),
    Swap,
    Reverse(u64),
    Stale,
    Replay(u64),
}

/// When a fault is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Once for a call.
    Call,
    /// For each message of a stream.
    Message,
}

/// Names of faults in rules.
pub(super) const NAMES: [&str; 23] = [
    "delay",
    "hang",
    "stall",
    "fail",
    "lost",
    "eof",
    "reset",
    "end",
    "withhold",
    "cut",
    "freeze",
    "empty",
    "partial",
    "huge",
    "running",
    "nil-sandbox",
    "wrong-uid",
    "drop",
    "duplicate",
    "swap",
    "reverse",
    "stale",
    "replay",
];

impl Fault {
    /// Parses `name` or `name=argument`.
    pub(super) fn parse(word: &str) -> Result<Self, FaultError> {
        let (name, argument) = match word.split_once('=') {
            Some((name, argument)) => (name, Some(argument)),
            None => (word, None),
        };
        let needed = |example: &str| {
            argument.ok_or_else(|| {
                FaultError::Value(format!("{name} needs a value, such as {name}={example}"))
            })
        };
        let count = |default| argument.map_or(Ok(default), |text| number(text, MAX_MESSAGES));
        let code = |text: &str| {
            Code::named(text).ok_or_else(|| {
                let names: Vec<_> = Code::names().collect();
                FaultError::Value(format!(
                    "{text:?} is not a gRPC code; the codes are {}",
                    names.join(", ")
                ))
            })
        };
        let fault = match name {
            "delay" => Self::Delay(span(needed("200ms")?)?),
            "fail" => Self::Fail(argument.map_or(Ok(Code::UNAVAILABLE), code)?),
            "lost" => Self::Lost(argument.map(code).transpose()?),
            "freeze" => Self::Freeze(duration(needed("30s")?)?),
            "partial" => Self::Partial(argument.map_or(Ok(500_000), share)?),
            "huge" => Self::Huge(argument.map_or(Ok(DEFAULT_PADDING), size)? as usize),
            "wrong-uid" => Self::WrongUid(
                argument
                    .unwrap_or("00000000-0000-0000-0000-000000000000")
                    .to_owned(),
            ),
            "duplicate" => Self::Duplicate(count(2)?),
            "reverse" => Self::Reverse(count(4)?),
            "replay" => Self::Replay(count(100)?),
            _ => {
                let fault = Self::without_argument(name)?;
                if argument.is_some() {
                    return Err(FaultError::Value(format!("{name} takes no value")));
                }
                fault
            }
        };
        Ok(fault)
    }

    fn without_argument(name: &str) -> Result<Self, FaultError> {
        Ok(match name {
            "hang" => Self::Hang,
            "stall" => Self::Stall,
            "eof" => Self::Eof,
            "reset" => Self::Reset,
            "end" => Self::End,
            "withhold" => Self::Withhold,
            "cut" => Self::Cut,
            "empty" => Self::Empty,
            "running" => Self::Running,
            "nil-sandbox" => Self::NilSandbox,
            "drop" => Self::Drop,
            "swap" => Self::Swap,
            "stale" => Self::Stale,
            _ => {
                return Err(FaultError::UnknownName(match nearest(name, NAMES) {
                    Some(near) => format!("there is no fault {name:?}; did you mean {near:?}?"),
                    None => format!("there is no fault {name:?}; there are {}", NAMES.join(", ")),
                }));
            }
        })
    }

    /// When it is chosen for a call of this shape; `None` if it can't be applied to such a call.
    pub(crate) fn stage(&self, shape: Shape) -> Option<Stage> {
        let (call, message) = (Some(Stage::Call), Some(Stage::Message));
        match (self, shape.is_stream()) {
            (Self::Hang | Self::Stall | Self::Fail(_) | Self::Cut | Self::Freeze(_), _)
            | (Self::Lost(_) | Self::Delay(_) | Self::Eof | Self::Reset, false)
            | (Self::Withhold, true) => call,
            (
                Self::Delay(_)
                | Self::Eof
                | Self::Reset
                | Self::End
                | Self::Drop
                | Self::Duplicate(_)
                | Self::Swap
                | Self::Reverse(_),
                true,
            ) => message,
            _ => match (self, shape) {
                (Self::Stale | Self::Replay(_) | Self::NilSandbox, Shape::Events)
                | (Self::WrongUid(_), Shape::Events)
                | (Self::Running, Shape::ContainerChunks) => message,
                (Self::NilSandbox | Self::WrongUid(_), Shape::SandboxStatus)
                | (Self::Running, Shape::ContainerStatus | Shape::Containers) => call,
                (Self::Empty | Self::Partial(_) | Self::Huge(_), shape) if shape.is_list() => {
                    if shape.is_stream() {
                        message
                    } else {
                        call
                    }
                }
                _ => None,
            },
        }
    }

    /// Whether it is about the items of lists, so that a rule's selection applies to these.
    pub(crate) fn is_about_items(&self) -> bool {
        matches!(self, Self::Empty | Self::Partial(_) | Self::Running)
    }
}

/// A whole number from 1 to `most`.
pub(super) fn number(text: &str, most: u64) -> Result<u64, FaultError> {
    match text.parse() {
        Ok(number) if (1..=most).contains(&number) => Ok(number),
        _ => Err(FaultError::Value(format!(
            "{text:?} is not a whole number from 1 to {most}"
        ))),
    }
}

/// A share, `10%` or `0.1`, in millionths.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is from 0 to a million"
)]
pub(super) fn share(text: &str) -> Result<u32, FaultError> {
    let (digits, whole) = match text.strip_suffix('%') {
        Some(digits) => (digits, 100.0),
        None => (text, 1.0),
    };
    match digits.parse::<f64>() {
        Ok(share) if (0.0..=whole).contains(&share) => {
            Ok((share / whole * 1_000_000.0).round() as u32)
        }
        _ => Err(FaultError::Value(format!(
            "{text:?} is not a share; write 10% or 0.1"
        ))),
    }
}

fn duration(text: &str) -> Result<Duration, FaultError> {
    match parse_go(text) {
        Ok(duration) if duration <= MAX_DURATION => Ok(duration),
        Ok(_) => Err(FaultError::Value(format!("{text} is longer than a day"))),
        Err(error) => Err(FaultError::Value(format!(
            "{error}; write it like 200ms, 5s or 1m30s"
        ))),
    }
}

/// One duration, or `from..to`, in milliseconds.
fn span(text: &str) -> Result<Range<u64>, FaultError> {
    let millis = |text| duration(text).map(|duration| duration.as_millis() as u64);
    let (from, to) = match text.split_once("..") {
        Some((from, to)) => (millis(from)?, millis(to)?),
        None => (millis(text)?, millis(text)?),
    };
    if to < from {
        return Err(FaultError::Value(format!(
            "{text:?}: the longest is shorter than the shortest"
        )));
    }
    Ok(from..to + 1)
}

/// A size, `17MiB`, `500KiB` or bytes.
fn size(text: &str) -> Result<u64, FaultError> {
    let units = [("MiB", 1024 * 1024), ("KiB", 1024), ("", 1)];
    let most = 256 * 1024 * 1024;
    units
        .iter()
        .find_map(|(unit, factor)| {
            let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
            number.checked_mul(*factor)
        })
        .filter(|size| *size <= most)
        .ok_or_else(|| {
            FaultError::Value(format!(
                "{text:?} is not a size up to 256MiB; write it like 17MiB"
            ))
        })
}
