//! The final status of a session: `metav1.Status` as JSON, or plain text in old protocols.

use bytes::Bytes;
use rubelet_base::ErrorChain;
use rubelet_cri::CriError;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{SessionExit, SessionKind, ending::SessionEnding};

/// The format in which a protocol reports the end of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatusForm {
    /// `v4` and newer: a Status.
    Json,
    /// Older ones: nothing for success, else a text.
    Text,
}

/// The status of a session's end; empty if there is nothing to report.
pub(crate) fn status(
    form: StatusForm,
    kind: SessionKind,
    exit: &Result<SessionExit, CriError>,
) -> Bytes {
    let json = match exit {
        Ok(SessionExit::Code(0)) => json!({ "metadata": {}, "status": "Success" }),
        Ok(SessionExit::Code(code)) => json!({
            "metadata": {},
            "status": "Failure",
            "message": format!("command terminated with non-zero exit code: {code}"),
            "reason": "NonZeroExitCode",
            "details": { "causes": [{ "reason": "ExitCode", "message": code.to_string() }] },
        }),
        Ok(SessionExit::Status(status)) if form == StatusForm::Json => return status.clone(),
        Ok(SessionExit::Status(status)) => serde_json::from_slice(status).unwrap_or_default(),
        Err(error) => internal(&format!("{}: {}", doing(kind), words(error))),
    };
    match form {
        StatusForm::Json => json.to_string().into(),
        StatusForm::Text if json["status"] == "Success" => Bytes::new(),
        StatusForm::Text => json["message"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
            .into(),
    }
}

/// The status of a session that the server ends.
pub(crate) fn ended_by(ending: SessionEnding) -> Result<SessionExit, CriError> {
    Ok(SessionExit::Status(
        internal(&format!("{ending}; the process keeps running"))
            .to_string()
            .into(),
    ))
}

fn internal(message: &str) -> Value {
    json!({
        "metadata": {},
        "status": "Failure",
        "message": format!("Internal error occurred: {message}"),
        "reason": "InternalError",
        "details": { "causes": [{ "message": message }] },
        "code": 500,
    })
}

fn doing(kind: SessionKind) -> &'static str {
    match kind {
        SessionKind::Exec => "error executing command in container",
        SessionKind::Attach => "error attaching to container",
        SessionKind::PortForward => "error forwarding ports",
    }
}

/// The runtime's own message, if there is one.
pub(crate) fn words(error: &CriError) -> String {
    match error.message.as_str() {
        "" => ErrorChain(error).to_string(),
        message => message.to_owned(),
    }
}

impl SessionExit {
    /// The exit code of the command.
    ///
    /// # Errors
    /// The session failed; the message is for its user.
    pub fn code(&self) -> Result<i32, SessionFailed> {
        let json = match self {
            Self::Code(code) => return Ok(*code),
            Self::Status(json) => json,
        };
        let status: Status = serde_json::from_slice(json)
            .map_err(|_| SessionFailed("the server's last status makes no sense".to_owned()))?;
        if status.status == "Success" {
            return Ok(0);
        }
        let causes = status.details.unwrap_or_default().causes;
        let code = causes
            .iter()
            .find(|cause| cause.reason == "ExitCode")
            .and_then(|cause| cause.message.parse().ok());
        match code {
            Some(code) if status.reason == "NonZeroExitCode" => Ok(code),
            _ => Err(SessionFailed(status.message)),
        }
    }
}

/// A session failed, with the server's message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SessionFailed(pub String);

#[derive(Deserialize, Default)]
#[serde(default)]
struct Status {
    status: String,
    message: String,
    reason: String,
    details: Option<Details>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Details {
    causes: Vec<Cause>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Cause {
    reason: String,
    message: String,
}

#[cfg(test)]
mod tests {
    use rubelet_cri::CriErrorKind;

    use super::*;

    #[test]
    fn an_exit_code_comes_back_from_a_status() {
        for code in [0, 1, 137] {
            let exit = Ok(SessionExit::Code(code));
            let json = status(StatusForm::Json, SessionKind::Exec, &exit);
            assert_eq!(SessionExit::Status(json).code(), Ok(code));
        }
    }

    #[test]
    fn a_failure_says_what_was_done() {
        let error = CriError::new("Exec", CriErrorKind::NotFound, "no such program");
        let json = status(StatusForm::Json, SessionKind::Exec, &Err(error.clone()));
        let failed = SessionExit::Status(json).code().unwrap_err().to_string();
        let expected =
            "Internal error occurred: error executing command in container: no such program";
        assert_eq!(failed, expected);
        let text = status(StatusForm::Text, SessionKind::Attach, &Err(error));
        let expected = "Internal error occurred: error attaching to container: no such program";
        assert_eq!(text, expected);
    }

    #[test]
    fn old_protocols_say_nothing_of_a_success() {
        let exit = Ok(SessionExit::Code(0));
        assert!(status(StatusForm::Text, SessionKind::Exec, &exit).is_empty());
        let exit = Ok(SessionExit::Code(3));
        let text = status(StatusForm::Text, SessionKind::Exec, &exit);
        assert_eq!(text, "command terminated with non-zero exit code: 3");
    }

    #[test]
    fn a_status_that_makes_no_sense_is_a_failure() {
        for text in ["", "null", "[]", "{\"status\":3}"] {
            let exit = SessionExit::Status(text.into());
            assert!(exit.code().is_err(), "{text}");
        }
    }
}
