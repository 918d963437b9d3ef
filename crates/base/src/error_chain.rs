//! An error with all of its causes on one line.

use std::{error::Error, fmt};

/// Displays an error and each of its `source()`s, joined by `: `. A cause that the outer message
/// already ends with is omitted.
pub struct ErrorChain<'a>(pub &'a (dyn Error + 'static));

impl fmt::Display for ErrorChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut last = self.0.to_string();
        f.write_str(&last)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            let text = error.to_string();
            if !last.ends_with(&text) {
                write!(f, ": {text}")?;
            }
            last = text;
            cause = error.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::ErrorChain;

    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct OuterError(#[source] InnerError);

    #[derive(Debug, thiserror::Error)]
    #[error("inner")]
    struct InnerError;

    #[test]
    fn prints_each_cause_once() {
        assert_eq!(
            ErrorChain(&OuterError(InnerError)).to_string(),
            "outer: inner"
        );
    }
}
