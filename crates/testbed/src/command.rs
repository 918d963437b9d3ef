//! Runs another program until it exits and returns its output.

use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, bail};

/// Runs `command` with an empty standard input; returns its standard output as text.
///
/// # Errors
/// When it can't be started or its exit code isn't 0; the message has the command line and its
/// standard error.
pub fn stdout_of(command: &mut Command) -> Result<String> {
    let output = output_of(command)?;
    if !output.status.success() {
        bail!(
            "`{}` failed ({}): {}",
            line(command),
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs `command` with an empty standard input; returns its exit status and output.
///
/// # Errors
/// When it can't be started.
pub fn output_of(command: &mut Command) -> Result<Output> {
    command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start `{}`", line(command)))
}

/// The command line as a user would type it.
#[must_use]
pub fn line(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy()];
    words.extend(command.get_args().map(|arg| arg.to_string_lossy()));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_reported_with_command_line_and_stderr() {
        let error =
            stdout_of(Command::new("sh").args(["-c", "echo no luck >&2; exit 3"])).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("sh -c echo no luck"), "{text}");
        assert!(text.contains("exit status: 3): no luck"), "{text}");
    }
}
