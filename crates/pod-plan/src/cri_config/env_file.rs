//! Env files, read by `fileKeyRef` (kubelet: `util/env`). A subset of the shell's syntax:
//! `NAME='value'`, where the value is literal and may have several lines; empty lines and lines
//! that begin with `#` are ignored.

/// A syntax error in an env file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct EnvFileError {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: &'static str,
}

/// The value of a name; `None` if it is missing or empty. The rest of the file is not read.
///
/// # Errors
/// See [`EnvFileError`].
pub fn value(text: &str, wanted: &str) -> Result<Option<String>, EnvFileError> {
    let mut lines = text.lines().zip(1..);
    while let Some((line, number)) = lines.next() {
        let line = line.trim_start_matches(BLANKS);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let at = |line| move |problem| EnvFileError { line, problem };
        let failed = at(number);
        let (name, value) = line.split_once('=').ok_or(failed("'=' is missing"))?;
        if name.is_empty() {
            return Err(failed("the name before '=' is missing"));
        }
        if name.ends_with(BLANKS) {
            return Err(failed("whitespace before '=' is not allowed"));
        }
        // As in a shell: the value is empty, and the rest of the line does not belong to it.
        if value.starts_with(BLANKS) {
            if name == wanted {
                return Ok(None);
            }
            continue;
        }
        let mut rest = value
            .strip_prefix('\'')
            .ok_or(failed("the value must be enclosed in single quotes"))?;
        let mut value = String::new();
        let (behind, last) = loop {
            if let Some((before, behind)) = rest.split_once('\'') {
                value.push_str(before);
                break (behind, number);
            }
            value.push_str(rest);
            value.push('\n');
            (rest, _) = lines
                .next()
                .ok_or(failed("the single quote is not closed"))?;
        };
        let behind = behind.trim_start_matches(BLANKS);
        if !behind.is_empty() && !behind.starts_with('#') {
            return Err(at(last)("unexpected text after the value"));
        }
        if name == wanted {
            return Ok(Some(value).filter(|value| !value.is_empty()));
        }
    }
    Ok(None)
}

const BLANKS: [char; 2] = [' ', '\t'];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_as_the_kubelet_reads_it() {
        for (text, expected) in [
            ("A='b'", Ok(Some("b"))),
            (
                "B='x'\n\n# A='c'\n \tA='$B \"\\n' # why\nA='later'\n",
                Ok(Some("$B \"\\n")),
            ),
            ("A='one\n two'\r\n", Ok(Some("one\n two"))),
            ("A='one\r\ntwo'", Ok(Some("one\ntwo"))),
            ("B='A=1'", Ok(None)),
            ("A=''", Ok(None)),
            ("A= 'b'\nA='c'", Ok(None)),
            ("", Ok(None)),
            ("A='b'\nnonsense", Ok(Some("b"))),
            ("nonsense\nA='b'", Err("line 1: '=' is missing")),
            ("='b'", Err("line 1: the name before '=' is missing")),
            (
                "\nA ='b'",
                Err("line 2: whitespace before '=' is not allowed"),
            ),
            (
                "A=b",
                Err("line 1: the value must be enclosed in single quotes"),
            ),
            (
                "A=\"b\"",
                Err("line 1: the value must be enclosed in single quotes"),
            ),
            ("A='b\nc\n", Err("line 1: the single quote is not closed")),
            ("A='b'c", Err("line 1: unexpected text after the value")),
        ] {
            let found = value(text, "A").map_err(|error| error.to_string());
            let expected = expected.map(|found| found.map(str::to_owned));
            assert_eq!(found, expected.map_err(str::to_owned), "{text:?}");
        }
    }
}
