//! Files of rules, one per line.

use super::{Rule, RuleError, parse};

/// Parses a file: one rule per line; `#` starts a comment, and empty lines are skipped.
///
/// # Errors
/// The first line that is not a rule.
pub fn parse_file(text: &str) -> Result<Vec<Rule>, RuleError> {
    (1..)
        .zip(text.lines())
        .map(|(line, text)| (line, text.split('#').next().unwrap_or_default()))
        .filter(|(_, text)| !text.trim().is_empty())
        .map(|(line, text)| {
            parse::parse(text).map_err(|(column, problem)| RuleError::Line {
                line,
                column,
                problem,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_empty_lines_are_skipped() {
        let text = "# what hurts\n\nVersion hang # for ever\n  Status delay=1s\n";
        let rules: Vec<_> = parse_file(text).unwrap();
        let shown: Vec<_> = rules.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["Version hang", "Status delay=1s"]);
    }

    #[test]
    fn an_error_names_line_and_column() {
        let error = parse_file("Version hang\n\n  Status hnag\n").unwrap_err();
        let text = "line 3, column 10: there is no fault \"hnag\"; did you mean \"hang\"?";
        assert_eq!(error.to_string(), text);
    }
}
