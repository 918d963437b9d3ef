//! Error responses of registries and token servers.

use http::{Method, StatusCode, header};
use serde::Deserialize;

use super::transport::RegistryResponse;
use crate::{PullError, PullErrorKind};

/// Maximum number of bytes of an error response that are read, and that are shown.
const LOOKED_AT: usize = 8 * 1024;
const SHOWN: usize = 300;

#[derive(Deserialize)]
struct ErrorBody {
    #[serde(default)]
    errors: Vec<ErrorEntry>,
    /// Token servers.
    #[serde(default)]
    details: String,
}

#[derive(Deserialize)]
struct ErrorEntry {
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
}

/// The error for a response without success.
pub(super) async fn refusal(method: &Method, url: &str, answer: RegistryResponse) -> PullError {
    let status = answer.status;
    let kind = match status {
        StatusCode::NOT_FOUND => PullErrorKind::NotFound,
        StatusCode::UNAUTHORIZED => PullErrorKind::Unauthenticated,
        StatusCode::FORBIDDEN => PullErrorKind::PermissionDenied,
        StatusCode::TOO_MANY_REQUESTS => PullErrorKind::TooManyRequests,
        StatusCode::REQUEST_TIMEOUT => PullErrorKind::Unavailable,
        status if status.is_server_error() => PullErrorKind::Unavailable,
        _ => PullErrorKind::Refused,
    };
    let wait = answer.headers.get(header::RETRY_AFTER);
    let wait = wait.and_then(|value| value.to_str().ok().map(str::to_owned));
    let said = said(&answer.body.start(LOOKED_AT).await);
    // A query may contain a signature of the storage.
    let url = url.split('?').next().unwrap_or_default();
    let mut message = format!("{method} {url}: unexpected status {status}");
    if !said.is_empty() {
        message.push_str(": ");
        message.push_str(&said);
    }
    if let Some(wait) = wait {
        message.push_str(&format!(" (try again in {wait:.40})"));
    }
    match kind {
        PullErrorKind::Unauthenticated | PullErrorKind::PermissionDenied => message
            .push_str("; the repository may not exist, or needs credentials that can pull from it"),
        _ => {}
    }
    PullError::new(kind, message)
}

/// The message in the body of an error response, on one line.
fn said(body: &[u8]) -> String {
    let said = match serde_json::from_slice::<ErrorBody>(body) {
        Ok(refusal) if !refusal.errors.is_empty() => {
            let problems = refusal.errors.into_iter().take(3);
            let problems: Vec<String> = problems
                .map(|problem| match problem.message.as_str() {
                    "" => problem.code,
                    message => message.to_owned(),
                })
                .collect();
            problems.join("; ")
        }
        Ok(refusal) => refusal.details,
        // An HTML page is not useful here.
        Err(_) if body.trim_ascii_start().starts_with(b"<") => String::new(),
        Err(_) => String::from_utf8_lossy(body).into_owned(),
    };
    let plain = said.chars().map(|c| if c.is_control() { ' ' } else { c });
    plain.take(SHOWN).collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registrys_words_are_shown_on_one_line() {
        let body = br#"{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest\nunknown","detail":{}}]}"#;
        assert_eq!(said(body), "manifest unknown");
        assert_eq!(said(br#"{"errors":[{"code":"DENIED"}]}"#), "DENIED");
        assert_eq!(
            said(br#"{"details":"incorrect username or password"}"#),
            "incorrect username or password"
        );
        assert_eq!(said(b"<html>not found</html>"), "");
        assert_eq!(said(b"404 page not found\n"), "404 page not found");
        assert_eq!(said("x".repeat(1000).as_bytes()).len(), SHOWN);
    }
}
