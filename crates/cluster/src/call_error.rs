//! Classification of failed calls to the API server by how the caller reacts.

use std::{fmt, time::Duration};

use rubelet_base::ErrorChain;
use rubelet_kube::ApiError;

/// Why a call came to nothing, and so what to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallErrorKind {
    /// There is no such object, or no such namespace.
    NotFound,
    /// An object of that name exists.
    AlreadyExists,
    /// The object of that name is another one.
    OtherUid,
    /// Not allowed.
    Forbidden,
    /// The API server takes this content for wrong; the same content will never do.
    Invalid,
    /// It may work later, but not before the time that the API server names.
    Later(Option<Duration>),
    /// The API server can't be reached, or it did not answer in time: the call is perhaps done.
    Unreachable,
}

/// A call that came to nothing.
#[derive(Debug, Clone)]
pub(crate) struct CallError {
    pub(crate) kind: CallErrorKind,
    /// For operators.
    pub(crate) text: String,
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<ApiError> for CallError {
    fn from(error: ApiError) -> Self {
        Self {
            kind: kind(&error),
            text: ErrorChain(&error).to_string(),
        }
    }
}

fn kind(error: &ApiError) -> CallErrorKind {
    let (code, retry_after) = match error {
        ApiError::Status {
            code, retry_after, ..
        } => (*code, *retry_after),
        ApiError::Unreachable(_) | ApiError::TimedOut | ApiError::Credentials(_) => {
            return CallErrorKind::Unreachable;
        }
        ApiError::Body(_) => return CallErrorKind::Later(None),
        ApiError::Request { .. } => return CallErrorKind::Invalid,
    };
    // For another UID the API server has no reason of its own, and several words: deletions fail
    // their precondition, patches would change what is immutable.
    let other_uid = || {
        let text = error.to_string();
        text.contains("UID") || text.contains("metadata.uid: Invalid value")
    };
    match code {
        404 => CallErrorKind::NotFound,
        409 if error.is_already_exists() => CallErrorKind::AlreadyExists,
        409 | 422 if other_uid() => CallErrorKind::OtherUid,
        401 | 403 => CallErrorKind::Forbidden,
        // A time-out of the server, a lost race, too many requests.
        408 | 409 | 429 => CallErrorKind::Later(retry_after),
        400..500 => CallErrorKind::Invalid,
        _ => CallErrorKind::Later(retry_after),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(code: u16, reason: &str, message: &str) -> CallErrorKind {
        kind(&ApiError::Status {
            code,
            reason: reason.to_owned(),
            message: message.to_owned(),
            retry_after: (code == 429).then_some(Duration::from_secs(3)),
        })
    }

    #[test]
    fn answers_of_the_api_server_say_whether_to_try_again() {
        let precondition = "Precondition failed: UID in precondition: a, UID in object meta: b";
        let deletion = "Operation cannot be fulfilled on Pod \"t\": the UID in the precondition (a) \
                        does not match the UID in record (b). The object might have been deleted \
                        and then recreated";
        let immutable =
            "Pod \"t\" is invalid: metadata.uid: Invalid value: \"a\": field is immutable";
        let race = "the object has been modified; please apply your changes to the latest version";
        for (code, reason, message, expected) in [
            (404, "NotFound", "", CallErrorKind::NotFound),
            (409, "AlreadyExists", "", CallErrorKind::AlreadyExists),
            (409, "Conflict", precondition, CallErrorKind::OtherUid),
            (409, "Conflict", deletion, CallErrorKind::OtherUid),
            (422, "Invalid", immutable, CallErrorKind::OtherUid),
            (409, "Conflict", race, CallErrorKind::Later(None)),
            (403, "Forbidden", "", CallErrorKind::Forbidden),
            (401, "Unauthorized", "", CallErrorKind::Forbidden),
            (422, "Invalid", "", CallErrorKind::Invalid),
            (
                429,
                "TooManyRequests",
                "",
                CallErrorKind::Later(Some(Duration::from_secs(3))),
            ),
            (500, "InternalError", "", CallErrorKind::Later(None)),
            (503, "ServiceUnavailable", "", CallErrorKind::Later(None)),
        ] {
            assert_eq!(of(code, reason, message), expected, "{code} {reason}");
        }
    }
}
