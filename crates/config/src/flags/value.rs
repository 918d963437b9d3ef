//! Parses values of flags as `pflag` and Kubernetes' own flag types do.
//!
//! Source of the rules: `k8s.io/component-base/cli/flag` and `pkg/util/flag` of Kubernetes 1.36.

use crate::quantity::sign;
use rubelet_base::duration::parse_go;
use serde_json::{Map, Value, json};

/// The type of a flag's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlagKind {
    /// true or false; without a value it means true.
    Bool,
    /// A whole number of 32 bits.
    Int32,
    /// A whole number of 64 bits.
    Int64,
    /// A string.
    Text,
    /// A duration such as `10s`.
    Duration,
    /// A duration; a negative value means never.
    AnyDuration,
    /// A number, possibly with a fraction.
    Float,
    /// An IP address.
    Ip,
    /// One IP address, or one of each family separated by a comma.
    NodeIps,
    /// Strings separated by commas. Given again, it adds to the list.
    List,
    /// `key=value` pairs separated by commas. Given again, it adds to the mapping.
    Map,
    /// As `Map`; a key may have no value.
    Labels,
    /// One `key=value` pair. Given again, it adds to the mapping.
    Pair,
    /// `key=true` or `key=false` pairs separated by commas.
    BoolMap,
    /// `signal<quantity` pairs separated by commas.
    Thresholds,
    /// `header:value` pairs separated by commas; a header may be repeated.
    Headers,
    /// `key=value:effect` taints separated by commas.
    Taints,
    /// `node:type=quantity,type=quantity` groups separated by semicolons.
    ReservedMemory,
    /// A level from 0.
    Level,
    /// `pattern=level` pairs separated by commas.
    Patterns,
    /// A quantity such as `10Mi`.
    Quantity,
    /// No value, `true`, `false` or `raw`.
    Version,
}

impl FlagKind {
    /// Whether the value is optional; then it is never taken from the next argument.
    pub(super) const fn value_is_optional(self) -> bool {
        matches!(self, Self::Bool | Self::Version)
    }

    /// The form of the value, for help texts.
    #[must_use]
    pub const fn example(self) -> &'static str {
        match self {
            Self::Bool => "true|false",
            Self::Int32 | Self::Int64 | Self::Level => "NUMBER",
            Self::Text => "TEXT",
            Self::Duration | Self::AnyDuration => "DURATION",
            Self::Float => "NUMBER",
            Self::Ip => "IP",
            Self::NodeIps => "IP[,IP]",
            Self::List => "TEXT,...",
            Self::Map | Self::Labels => "KEY=VALUE,...",
            Self::Pair => "KEY=VALUE",
            Self::BoolMap => "NAME=true|false,...",
            Self::Thresholds => "SIGNAL<QUANTITY,...",
            Self::Headers => "HEADER:VALUE,...",
            Self::Taints => "KEY=VALUE:EFFECT,...",
            Self::ReservedMemory => "NODE:TYPE=QUANTITY;...",
            Self::Patterns => "PATTERN=LEVEL,...",
            Self::Quantity => "QUANTITY",
            Self::Version => "true|false|raw",
        }
    }
}

/// A value that does not have the form that its flag requires; displays as that form.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct InvalidValue(String);

/// Reads the value of a flag.
///
/// # Errors
/// See [`InvalidValue`].
pub(super) fn read(kind: FlagKind, text: &str) -> Result<Value, InvalidValue> {
    parse(kind, text).map_err(InvalidValue)
}

fn parse(kind: FlagKind, text: &str) -> Result<Value, String> {
    match kind {
        FlagKind::Bool => boolean(text).map(Value::Bool),
        FlagKind::Int32 => integer(text)
            .filter(|number| i32::try_from(*number).is_ok())
            .map(Value::from)
            .ok_or_else(|| "expected a whole number from -2147483648 to 2147483647".to_owned()),
        FlagKind::Int64 => integer(text)
            .map(Value::from)
            .ok_or_else(|| "expected a whole number".to_owned()),
        FlagKind::Text => Ok(text.into()),
        FlagKind::Duration => match parse_go(text) {
            Ok(_) => Ok(text.into()),
            Err(error) => Err(error.to_string()),
        },
        FlagKind::AnyDuration => match parse_go(text.strip_prefix('-').unwrap_or(text)) {
            Ok(_) => Ok(text.into()),
            Err(error) => Err(error.to_string()),
        },
        FlagKind::Float => match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(number.into()),
            _ => Err("expected a number".to_owned()),
        },
        FlagKind::Ip => match text.parse::<core::net::IpAddr>() {
            Ok(_) => Ok(text.into()),
            Err(_) => Err("expected an IP address".to_owned()),
        },
        FlagKind::NodeIps => node_ips(text),
        FlagKind::List => Ok(comma_separated(text)?.into()),
        FlagKind::Map => pairs(text.split(','), '=', "key=value"),
        FlagKind::Labels => {
            let pairs = text.split(',').filter(|pair| !pair.is_empty());
            Ok(pairs
                .map(|pair| trimmed(pair.split_once('=').unwrap_or((pair, ""))))
                .collect())
        }
        FlagKind::Pair => pairs(std::iter::once(text), '=', "key=value"),
        FlagKind::BoolMap => {
            let Value::Object(texts) = pairs(text.split(','), '=', "name=true or name=false")?
            else {
                return Ok(json!({}));
            };
            let flags = texts.into_iter().map(|(name, text)| {
                let value = boolean(text.as_str().unwrap_or_default())
                    .map_err(|expected| format!("{name}: {expected}"))?;
                Ok((name, Value::Bool(value)))
            });
            Ok(Value::Object(flags.collect::<Result<Map<_, _>, String>>()?))
        }
        FlagKind::Thresholds => pairs(text.split(','), '<', "signal<quantity"),
        FlagKind::Headers => headers(text),
        FlagKind::Taints => taints(text),
        FlagKind::ReservedMemory => reserved_memory(text),
        FlagKind::Level => level(text).ok_or_else(|| expected_level().to_owned()),
        FlagKind::Patterns => {
            let items = text.split(',').filter(|item| !item.is_empty()).map(|item| {
                let (pattern, text) = item
                    .split_once('=')
                    .filter(|(pattern, _)| !pattern.is_empty())
                    .ok_or_else(|| format!("expected pattern=level, found {item:?}"))?;
                let level = level(text).ok_or_else(|| expected_level().to_owned())?;
                Ok(json!({"filePattern": pattern, "verbosity": level}))
            });
            Ok(Value::Array(items.collect::<Result<_, String>>()?))
        }
        FlagKind::Quantity => match sign(text) {
            Some(_) => Ok(text.into()),
            None => Err("expected a quantity such as 10Mi".to_owned()),
        },
        FlagKind::Version => match text {
            "true" | "false" | "raw" => Ok(text.into()),
            _ => Err("expected true, false or raw".to_owned()),
        },
    }
}

/// Combines the values of a flag that is given again: lists and mappings grow, anything else is
/// replaced.
pub(super) fn combine(kind: FlagKind, before: &mut Value, next: Value) {
    match (&mut *before, next) {
        (Value::Array(list), Value::Array(more)) if kind != FlagKind::Taints => list.extend(more),
        (Value::Object(map), Value::Object(more)) => {
            for (key, value) in more {
                match (map.get_mut(&key), value) {
                    (Some(Value::Array(list)), Value::Array(more)) => list.extend(more),
                    (_, value) => {
                        map.insert(key, value);
                    }
                }
            }
        }
        (_, next) => *before = next,
    }
}

fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("expected true or false".to_owned()),
    }
}

/// Go's notation of integers: `0x` for base 16, `0o` or a leading zero for base 8, `0b` for base 2.
fn integer(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = digits.to_ascii_lowercase();
    let (base, digits) = if let Some(digits) = lower.strip_prefix("0x") {
        (16, digits)
    } else if let Some(digits) = lower.strip_prefix("0b") {
        (2, digits)
    } else if let Some(digits) = lower.strip_prefix("0o") {
        (8, digits)
    } else if let Some(digits) = lower.strip_prefix('0').filter(|rest| !rest.is_empty()) {
        (8, digits)
    } else {
        (10, lower.as_str())
    };
    match digits.starts_with(['-', '+']) {
        true => None,
        false => i64::from_str_radix(&format!("{sign}{digits}"), base).ok(),
    }
}

fn level(text: &str) -> Option<Value> {
    text.parse::<u32>()
        .ok()
        .filter(|level| i32::try_from(*level).is_ok())
        .map(Value::from)
}

fn expected_level() -> &'static str {
    "expected a level from 0 to 2147483647"
}

fn node_ips(text: &str) -> Result<Value, String> {
    let expected = || "expected an IP address, or one of each family".to_owned();
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    let addresses: Result<Vec<core::net::IpAddr>, _> =
        parts.iter().map(|part| part.parse()).collect();
    match addresses.as_deref() {
        Ok([_]) => Ok(text.into()),
        Ok([one, other]) if one.is_ipv4() != other.is_ipv4() => Ok(text.into()),
        // A template without a value produces an empty string.
        _ if text.is_empty() => Ok(text.into()),
        _ => Err(expected()),
    }
}

/// Splits a line of comma-separated values. A value in double quotes may contain commas, and double
/// quotes that are doubled.
fn comma_separated(text: &str) -> Result<Vec<String>, String> {
    let mut items = Vec::new();
    if text.is_empty() {
        return Ok(items);
    }
    let mut rest = text;
    loop {
        let (item, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted_item(quoted)?,
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                (rest[..end].to_owned(), &rest[end..])
            }
        };
        items.push(item);
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(items),
            None => return Err(format!("expected a comma before {after:?}")),
        }
    }
}

fn quoted_item(text: &str) -> Result<(String, &str), String> {
    let mut item = String::new();
    let mut rest = text;
    loop {
        let end = rest.find('"').ok_or("a quote is not closed")?;
        item.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(after) => {
                item.push('"');
                rest = after;
            }
            None => return Ok((item, rest)),
        }
    }
}

fn pairs<'a>(
    parts: impl Iterator<Item = &'a str>,
    separator: char,
    form: &str,
) -> Result<Value, String> {
    parts
        .filter(|part| !part.is_empty())
        .map(|part| {
            let pair = part.split_once(separator);
            pair.map(trimmed)
                .ok_or_else(|| format!("expected {form}, found {part:?}"))
        })
        .collect::<Result<Map<_, _>, String>>()
        .map(Value::Object)
}

fn trimmed((key, value): (&str, &str)) -> (String, Value) {
    (key.trim().to_owned(), value.trim().into())
}

fn headers(text: &str) -> Result<Value, String> {
    let mut headers = Value::Object(Map::new());
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (name, value) = part
            .split_once(':')
            .ok_or_else(|| format!("expected header:value, found {part:?}"))?;
        combine(
            FlagKind::Headers,
            &mut headers,
            json!({name.trim(): [value.trim()]}),
        );
    }
    Ok(headers)
}

fn taints(text: &str) -> Result<Value, String> {
    let taints = text
        .split(',')
        .filter(|taint| !taint.is_empty())
        .map(|taint| {
            let form = || format!("expected key=value:effect or key:effect, found {taint:?}");
            let (name, effect) = taint.split_once(':').ok_or_else(form)?;
            let (key, value) = name.split_once('=').unwrap_or((name, ""));
            let value = json!({"key": key, "value": value, "effect": effect});
            (!key.is_empty() && !effect.contains(':'))
                .then_some(value)
                .ok_or_else(form)
        });
    Ok(Value::Array(taints.collect::<Result<_, String>>()?))
}

fn reserved_memory(text: &str) -> Result<Value, String> {
    let groups = text
        .split(';')
        .filter(|group| !group.is_empty())
        .map(|group| {
            let form = || format!("expected node:type=quantity, found {group:?}");
            let (node, limits) = group.split_once(':').ok_or_else(form)?;
            let node = node.parse::<i32>().map_err(|_| form())?;
            let limits = pairs(limits.split(','), '=', "type=quantity")?;
            let quantities = limits.as_object().into_iter().flatten();
            for (name, quantity) in quantities {
                if sign(quantity.as_str().unwrap_or_default()).is_none() {
                    return Err(format!(
                        "{name}: expected a quantity such as 1Gi, found {quantity}"
                    ));
                }
            }
            Ok(json!({"numaNode": node, "limits": limits}))
        });
    Ok(Value::Array(groups.collect::<Result<_, String>>()?))
}

#[cfg(test)]
mod tests;
