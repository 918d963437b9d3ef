//! Failures of a child: one line that names the step and its object.

use std::io;

use rubelet_base::error_text;

/// A failure message.
#[derive(Debug)]
pub(crate) struct StepError(pub(crate) String);

impl StepError {
    /// A failure without a system call error.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// Adds the failed step to an error.
pub(crate) trait Step<T> {
    /// Prefixes the kernel's error with `text`.
    fn step<S: Into<String>>(self, text: impl FnOnce() -> S) -> Result<T, StepError>;
}

impl<T, E: Into<io::Error>> Step<T> for Result<T, E> {
    fn step<S: Into<String>>(self, text: impl FnOnce() -> S) -> Result<T, StepError> {
        self.map_err(|error| {
            let reason = reason(&error.into());
            StepError(format!("{}: {reason}", text().into()))
        })
    }
}

/// The kernel's error in the form of Go programs such as runc: lower case, without a number.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error_text(error);
    let mut letters = text.chars();
    match letters.next() {
        // An acronym such as RPC is kept.
        Some(first) if !text.chars().nth(1).is_some_and(char::is_uppercase) => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_read_as_users_know_them() {
        for (number, text) in [
            (libc::ENOENT, "no such file or directory"),
            (libc::EACCES, "permission denied"),
            (libc::EPERM, "operation not permitted"),
            (libc::ENOEXEC, "exec format error"),
            (libc::EISDIR, "is a directory"),
        ] {
            assert_eq!(reason(&io::Error::from_raw_os_error(number)), text);
        }
    }

    #[test]
    fn a_failure_names_its_step() {
        let result: Result<(), _> = Err(io::Error::from_raw_os_error(libc::ENOENT));
        let failure = result.step(|| "chdir to /x").unwrap_err();
        assert_eq!(failure.0, "chdir to /x: no such file or directory");
    }
}
