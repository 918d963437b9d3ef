//! Errors of the YAML library, reworded for a file's author.

use crate::path::{self, Step};
use crate::{DecodeError, Position};
use serde_saphyr::{DefaultMessageFormatter, Error, Location, MessageFormatter};

/// What is wrong with a text, at a position relative to its document.
#[derive(Debug)]
pub(crate) struct SyntaxError {
    pub(crate) position: Option<Position>,
    pub(crate) field: Option<String>,
    pub(crate) message: String,
}

impl SyntaxError {
    /// `steps` is the path that was being parsed when the parser failed.
    pub(crate) fn of(error: &Error, text: &str, mut steps: Vec<Step>) -> Self {
        let mut inner = error.without_snippet();
        while let Error::AliasError { error, .. } = inner {
            inner = error;
        }
        let position = error.location().and_then(position_of);
        if matches!(inner, Error::ExternalMessage { .. } | Error::Eof { .. }) {
            // The parser itself failed, possibly ahead of the field being parsed: name no field.
            let message = DefaultMessageFormatter.format_message(inner).into_owned();
            return match tab_in_indentation(text, position) {
                Some(tab) if message.contains("tab") => Self {
                    position: Some(tab),
                    field: None,
                    message: "tab in the indentation; YAML is indented with spaces".to_owned(),
                },
                _ => Self {
                    position,
                    field: None,
                    message: with_advice(message),
                },
            };
        }
        if let Error::DuplicateMappingKey { key: Some(key), .. } = inner {
            steps.push(Step::Key(key.clone()));
        }
        let field = Some(path::format(&steps)).filter(|field| !field.is_empty());
        Self {
            position,
            field,
            message: wording(inner),
        }
    }

    pub(crate) fn into_error(self, document: usize, lines_before: usize) -> DecodeError {
        let position = self.position.map(|position| Position {
            line: position.line + lines_before,
            ..position
        });
        DecodeError {
            document,
            position,
            field: self.field,
            message: self.message,
            snippet: None,
        }
    }
}

fn wording(error: &Error) -> String {
    match error {
        Error::DuplicateMappingKey { .. } => "field is given twice".to_owned(),
        Error::NonFiniteFloat { .. } => "infinity and NaN are not allowed".to_owned(),
        Error::NullIntoString { .. } => "a field name must not be empty or null".to_owned(),
        Error::Unexpected {
            expected: "string scalar",
            ..
        } => "a field name must be a string; put a value that begins with { or [ in quotes"
            .to_owned(),
        Error::UnknownAnchor { .. } => {
            "alias without anchor; put a value that begins with * in quotes".to_owned()
        }
        Error::AliasReplayLimitExceeded {
            max_total_replayed_events,
            ..
        } => {
            format!("aliases expand to more than {max_total_replayed_events} parts")
        }
        other => DefaultMessageFormatter.format_message(other).into_owned(),
    }
}

/// The parser's message, with the usual cause.
fn with_advice(message: String) -> String {
    let about_lines = [
        "did not find expected key",
        "did not find expected '-' indicator",
    ];
    match about_lines.iter().any(|words| message.contains(words)) {
        true => format!("{message}; is this line indented as those that belong with it are?"),
        false => message,
    }
}

/// The first tab before the text of the line at `position` or of the line after it: the parser
/// reports some tabs at the end of the previous line.
fn tab_in_indentation(text: &str, position: Option<Position>) -> Option<Position> {
    let first = position?.line;
    let lines = text.lines().enumerate().skip(first.checked_sub(1)?).take(2);
    lines.into_iter().find_map(|(index, line)| {
        let tab = line
            .find(|c| c != ' ')
            .filter(|&at| line[at..].starts_with('\t'))?;
        Some(Position {
            line: index + 1,
            column: tab + 1,
        })
    })
}

pub(crate) fn position_of(location: Location) -> Option<Position> {
    let line = usize::try_from(location.line())
        .ok()
        .filter(|&line| line > 0)?;
    let column = usize::try_from(location.column())
        .ok()
        .filter(|&column| column > 0)?;
    Some(Position { line, column })
}

/// A file system may leave NUL bytes after a crash; valid YAML or JSON text has none.
pub(crate) fn control_character(text: &str) -> Option<SyntaxError> {
    let bad = |c: char| c.is_ascii_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{7f}');
    let at = text.find(bad)?;
    let before = &text[..at];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let found = u32::from(text[at..].chars().next()?);
    Some(SyntaxError {
        position: Some(Position {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }),
        field: None,
        message: format!("control character U+{found:04X}; the file is damaged or not text"),
    })
}
