//! The lines around a position, for a terminal.

use crate::Position;
use std::fmt::Write as _;

const WIDTH: usize = 100;

/// The line at `position` and the one before it, numbered, with a mark below the column. Control
/// characters are replaced, so that a corrupt file can't control the terminal.
pub(crate) fn snippet(text: &str, position: Position) -> Option<String> {
    let line = text.lines().nth(position.line.checked_sub(1)?)?;
    let gutter = position.line.to_string().len();
    let mut out = String::new();
    if let Some(before) = position
        .line
        .checked_sub(2)
        .and_then(|index| text.lines().nth(index))
        && !before.trim().is_empty()
    {
        push_line(&mut out, gutter, position.line - 1, before, 0);
    }
    let skipped = position.column.saturating_sub(WIDTH);
    push_line(&mut out, gutter, position.line, line, skipped);
    let indent = position.column.saturating_sub(1).saturating_sub(skipped);
    write!(out, "{:gutter$} | {:indent$}^", "", "").expect("a String takes any text");
    Some(out)
}

fn push_line(out: &mut String, gutter: usize, number: usize, line: &str, skipped: usize) {
    let shown: String = line
        .chars()
        .skip(skipped)
        .take(WIDTH)
        .map(|c| match c {
            '\t' => ' ',
            c if c.is_control() => '\u{fffd}',
            c => c,
        })
        .collect();
    writeln!(out, "{number:gutter$} | {}", shown.trim_end()).expect("a String takes any text");
}

#[cfg(test)]
mod tests {
    use super::snippet;
    use crate::Position;

    #[test]
    fn shows_the_line_before_and_marks_the_column() {
        let text = "a:\n  b: 1\n  c: \u{0}x\n";
        assert_eq!(
            snippet(text, Position { line: 3, column: 3 }).unwrap(),
            "2 |   b: 1\n3 |   c: \u{fffd}x\n  |   ^"
        );
        assert_eq!(
            snippet(text, Position { line: 1, column: 1 }).unwrap(),
            "1 | a:\n  | ^"
        );
        assert_eq!(snippet(text, Position { line: 9, column: 1 }), None);
    }

    #[test]
    fn a_very_long_line_is_shown_around_the_column() {
        let text = "x".repeat(1000);
        let shown = snippet(
            &text,
            Position {
                line: 1,
                column: 500,
            },
        )
        .unwrap();
        let mut lines = shown.lines();
        assert!(lines.next().unwrap().len() <= 104);
        assert_eq!(lines.next().unwrap().chars().count(), 4 + 100);
    }
}
