//! Failures of a child, as one line of text that names the step and its object.

use std::io;

/// A failure, ready to be shown.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) String);

impl Failure {
    /// A failure that no system call reported.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl From<Failure> for crate::LaunchError {
    fn from(failure: Failure) -> Self {
        Self::Refused(failure.0)
    }
}

/// Names the step that failed.
pub(crate) trait Step<T> {
    /// The text comes before what the kernel said.
    fn step<S: Into<String>>(self, text: impl FnOnce() -> S) -> Result<T, Failure>;
}

impl<T, E: Into<io::Error>> Step<T> for Result<T, E> {
    fn step<S: Into<String>>(self, text: impl FnOnce() -> S) -> Result<T, Failure> {
        self.map_err(|error| {
            let reason = reason(&error.into());
            Failure(format!("{}: {reason}", text().into()))
        })
    }
}

/// What the kernel said, in the words that users of other runtimes search for: in lower case and
/// without a number.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    match letters.next() {
        // A word such as RPC stays as it is.
        Some(first) if !text.chars().nth(1).is_some_and(char::is_uppercase) => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => text.to_owned(),
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
