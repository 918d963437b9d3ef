//! Validates the streams of a session request.

/// The streams that `Exec` or `Attach` requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionStreams {
    /// Standard input.
    pub stdin: bool,
    /// Standard output.
    pub stdout: bool,
    /// Standard error.
    pub stderr: bool,
    /// A terminal.
    pub tty: bool,
}

/// Why a request for a session is refused; the words are those of the kubelet's streaming server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SessionRefusal {
    /// It names no container.
    #[error("missing required container_id")]
    NoContainer,
    /// It names no sandbox.
    #[error("missing required pod_sandbox_id")]
    NoSandbox,
    /// The output of a terminal is one stream.
    #[error("tty and stderr cannot both be true")]
    TerminalWithStderr,
    /// It requests no stream.
    #[error("one of stdin, stdout, or stderr must be set")]
    NoStream,
}

/// Checks a request for `Exec` or `Attach`.
///
/// # Errors
/// See [`SessionRefusal`].
pub fn check(container_id: &str, streams: SessionStreams) -> Result<(), SessionRefusal> {
    if container_id.is_empty() {
        return Err(SessionRefusal::NoContainer);
    }
    if streams.tty && streams.stderr {
        return Err(SessionRefusal::TerminalWithStderr);
    }
    if !streams.stdin && !streams.stdout && !streams.stderr {
        return Err(SessionRefusal::NoStream);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_a_container_a_stream_and_no_second_output_beside_a_terminal() {
        let streams = |text: &str| SessionStreams {
            stdin: text.contains('i'),
            stdout: text.contains('o'),
            stderr: text.contains('e'),
            tty: text.contains('t'),
        };
        for (id, asked, expected) in [
            ("c", "o", None),
            ("c", "i", None),
            ("c", "e", None),
            ("c", "ioe", None),
            ("c", "iot", None),
            ("", "o", Some("missing required container_id")),
            ("c", "iet", Some("tty and stderr cannot both be true")),
            ("c", "", Some("one of stdin, stdout, or stderr must be set")),
            (
                "c",
                "t",
                Some("one of stdin, stdout, or stderr must be set"),
            ),
        ] {
            let refused = check(id, streams(asked)).err().map(|why| why.to_string());
            assert_eq!(refused.as_deref(), expected, "{id:?} {asked:?}");
        }
    }
}
