//! The query of `/containerLogs`, parsed as the kubelet parses PodLogOptions, with its errors.

use http::StatusCode;
use jiff::Timestamp;
use rubelet_http_core::query::Query;
use rubelet_server::{LogOutput, LogSince};

/// The part of a log that a client requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LogOptions {
    pub(super) follow: bool,
    pub(super) previous: bool,
    pub(super) timestamps: bool,
    pub(super) since: Option<LogSince>,
    pub(super) tail_lines: Option<u64>,
    pub(super) limit_bytes: Option<u64>,
    /// `None` for both streams.
    pub(super) output: Option<LogOutput>,
}

/// Why a query is rejected.
pub(super) type BadQuery = (StatusCode, &'static str);

const UNREADABLE: BadQuery = (
    StatusCode::BAD_REQUEST,
    r#"{"message": "Unable to decode query."}"#,
);
const INVALID: BadQuery = (
    StatusCode::UNPROCESSABLE_ENTITY,
    r#"{"message": "Invalid request."}"#,
);

/// Parses a query. If a parameter is repeated the first value counts; unknown ones are ignored.
/// `tail` is the old name of `tailLines`, in which `all` means no limit.
pub(super) fn read(query: Option<&str>) -> Result<LogOptions, BadQuery> {
    let query = Query::parse(query).map_err(|_| UNREADABLE)?;
    let tail = match query.first("tail").filter(|tail| !tail.is_empty()) {
        Some("all") => None,
        Some(tail) => Some(number(tail)?),
        None => query.first("tailLines").map(number).transpose()?,
    };
    let limit = query.first("limitBytes").map(number).transpose()?;
    let seconds = query.first("sinceSeconds").map(number).transpose()?;
    let time = query.first("sinceTime").map(time).transpose()?;
    let output = match query.first("stream") {
        None | Some("All") => None,
        Some("Stdout") => Some(LogOutput::Stdout),
        Some("Stderr") => Some(LogOutput::Stderr),
        Some(_) => return Err(INVALID),
    };
    let since = match (seconds, time) {
        (None, None) => None,
        (Some(seconds), None) => Some(LogSince::Seconds(at_least(seconds, 1)?)),
        (None, Some(time)) => time.map(LogSince::Time),
        (Some(_), Some(_)) => return Err(INVALID),
    };
    let tail_lines = tail.map(|lines| at_least(lines, 0)).transpose()?;
    if output.is_some() && tail_lines.is_some() {
        return Err(INVALID);
    }
    Ok(LogOptions {
        follow: flag(&query, "follow"),
        previous: flag(&query, "previous"),
        timestamps: flag(&query, "timestamps"),
        since,
        tail_lines,
        limit_bytes: limit.map(|bytes| at_least(bytes, 1)).transpose()?,
        output,
    })
}

/// Everything but `0` and `false` is true, also the empty value.
fn flag(query: &Query, key: &str) -> bool {
    query
        .first(key)
        .is_some_and(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
}

fn number(text: &str) -> Result<i64, BadQuery> {
    text.parse().map_err(|_| UNREADABLE)
}

fn at_least(number: i64, min: u64) -> Result<u64, BadQuery> {
    match u64::try_from(number) {
        Ok(number) if number >= min => Ok(number),
        _ => Err(INVALID),
    }
}

/// `None` for an empty text: since the beginning.
fn time(text: &str) -> Result<Option<Timestamp>, BadQuery> {
    match text {
        "" | "null" => Ok(None),
        text => text.parse().map(Some).map_err(|_| UNREADABLE),
    }
}

#[cfg(test)]
mod tests;
