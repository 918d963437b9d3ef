//! The address of a runtime: `unix:///run/x.sock`, `unix:/run/x.sock` or just the path.

use std::path::{Path, PathBuf};

/// The longest path a unix socket address holds, in bytes (unix(7): `sun_path` less its NUL).
const LONGEST_SOCKET_PATH: usize = 107;

/// Why a text is not a unix socket endpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// It is empty.
    #[error("the runtime endpoint is empty; write unix:// and the absolute path of its socket")]
    Empty,
    /// A scheme other than `unix`.
    #[error(
        "runtime endpoint {0:?}: only unix sockets are supported; write unix:// and an absolute path"
    )]
    Scheme(String),
    /// The path is not absolute or is a directory.
    #[error("runtime endpoint {0:?}: not the absolute path of a socket")]
    Path(String),
    /// The path is too long for a socket address.
    #[error(
        "runtime endpoint {0:?}: longer than the {LONGEST_SOCKET_PATH} bytes a socket may have"
    )]
    TooLong(String),
}

/// The path of the socket that `endpoint` names.
///
/// # Errors
/// It is none of a Unix socket.
pub fn socket_path(endpoint: &str) -> Result<PathBuf, EndpointError> {
    let endpoint = endpoint.trim();
    let own = || endpoint.to_owned();
    if endpoint.is_empty() {
        return Err(EndpointError::Empty);
    }
    let path = match endpoint.strip_prefix("unix:") {
        Some(rest) => rest.strip_prefix("//").unwrap_or(rest),
        None if endpoint.starts_with('/') => endpoint,
        None if endpoint.contains(':') => return Err(EndpointError::Scheme(own())),
        None => return Err(EndpointError::Path(own())),
    };
    if !path.starts_with('/') || path.ends_with('/') {
        return Err(EndpointError::Path(own()));
    }
    if path.len() > LONGEST_SOCKET_PATH {
        return Err(EndpointError::TooLong(own()));
    }
    Ok(Path::new(path).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_spellings_of_a_socket_are_understood() {
        for text in [
            "unix:///run/c.sock",
            "unix:/run/c.sock",
            "/run/c.sock",
            " /run/c.sock\n",
        ] {
            assert_eq!(
                socket_path(text),
                Ok(PathBuf::from("/run/c.sock")),
                "{text:?}"
            );
        }
    }

    #[test]
    fn anything_else_is_refused_and_the_message_says_what_to_write() {
        let long = format!("unix:///{}", "x".repeat(107));
        for (text, part) in [
            ("", "empty"),
            ("tcp://127.0.0.1:3735", "only unix sockets"),
            ("npipe:////./pipe/containerd", "only unix sockets"),
            ("http://localhost", "only unix sockets"),
            ("run/c.sock", "absolute"),
            ("unix://run/c.sock", "absolute"),
            ("unix://", "absolute"),
            ("unix:///run/", "absolute"),
            (&long, "107 bytes"),
        ] {
            let error = socket_path(text).expect_err(text).to_string();
            assert!(error.contains(part), "{text:?}: {error}");
        }
    }
}
