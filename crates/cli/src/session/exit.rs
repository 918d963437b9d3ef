//! The exit code of a command by the end of its session.

use anyhow::anyhow;
use rubelet_cri::{CriError, CriResult};
use rubelet_streaming::SessionExit;
use serde_json::Value;

use super::super::{failure::CommandError, terminal::Terminal};

/// The failure of a session that broke.
pub(super) fn broken(error: &CriError) -> CommandError {
    let why = match error.message.as_str() {
        "" => error.to_string(),
        message => message.to_owned(),
    };
    anyhow!("the session ended early: {why}").into()
}

/// Reports an unsuccessful end.
pub(super) fn judge(
    exit: CriResult<SessionExit>,
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
    let code = match exit.map_err(|error| broken(&error))? {
        SessionExit::Code(code) => code,
        SessionExit::Status(status) => exit_code(&status)?,
    };
    if code == 0 {
        return Ok(());
    }
    terminal.note(&format!("command terminated with exit code {code}"));
    // A shell sees eight bits of it, and never success.
    Err(CommandError::Exit(match u8::try_from(code & 0xff) {
        Ok(code) if code != 0 => code,
        _ => 1,
    }))
}

/// The exit code in a `metav1.Status`, as `client-go` reads it.
fn exit_code(status: &[u8]) -> Result<i32, CommandError> {
    let status: Value = serde_json::from_slice(status).unwrap_or_default();
    if status["status"] == "Success" {
        return Ok(0);
    }
    let causes = status["details"]["causes"].as_array();
    let code = causes
        .into_iter()
        .flatten()
        .filter(|_| status["reason"] == "NonZeroExitCode")
        .find(|cause| cause["reason"] == "ExitCode")
        .and_then(|cause| cause["message"].as_str()?.parse().ok());
    let message = match status["message"].as_str() {
        Some(message) if !message.is_empty() => message,
        _ => "the session failed; the runtime does not say why",
    };
    code.ok_or_else(|| anyhow!("{message}").into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_status_is_an_exit_code_or_an_error() {
        let failed = |code: &str| {
            json!({ "status": "Failure", "reason": "NonZeroExitCode", "message": "no",
                    "details": { "causes": [{ "reason": "ExitCode", "message": code }] } })
        };
        for (status, expected) in [
            (json!({ "status": "Success" }), Ok(0)),
            (failed("3"), Ok(3)),
            (failed("three"), Err("no")),
            (
                json!({ "status": "Failure", "reason": "InternalError", "message": "lost" }),
                Err("lost"),
            ),
            (
                json!(null),
                Err("the session failed; the runtime does not say why"),
            ),
        ] {
            let code = exit_code(&serde_json::to_vec(&status).unwrap());
            let code = code.map_err(|failure| match failure {
                CommandError::Error(error) => error.to_string(),
                other => panic!("{other:?}"),
            });
            assert_eq!(code, expected.map_err(str::to_owned), "{status}");
        }
    }
}
