//! gRPC statuses and CRI errors, in both directions.

use std::time::Duration;

use rubelet_cri::{Code, CriError, CriErrorKind};
use tonic::Status;

/// containerd's message, with code `Unknown`, between the opening of its socket and the start of
/// its CRI plugin. Waiting helps, so it counts as unavailable.
const CONTAINERD_STARTING: &str = "server is not initialized yet";

/// The caller's error for `status`, received within the `deadline` it had set.
pub(crate) fn error_from(
    call: &'static str,
    status: &Status,
    deadline: Option<Duration>,
) -> CriError {
    let kind = match status.code() {
        Code::Unknown if status.message().contains(CONTAINERD_STARTING) => {
            CriErrorKind::Unavailable
        }
        // The codec's error for a message over the size limit; grpc-go's is ResourceExhausted.
        Code::OutOfRange if status.message().contains("message length too large") => {
            CriErrorKind::ResourceExhausted
        }
        code => CriErrorKind::from_code(code, deadline),
    };
    CriError::new(call, kind, status.message())
}

/// The status that represents `error` on the wire.
#[cfg(feature = "server")]
pub(crate) fn status_from(error: CriError) -> Status {
    Status::new(error.kind.code(), error.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_containerd_that_still_starts_is_unavailable_not_broken() {
        let status = Status::unknown("server is not initialized yet");
        assert!(error_from("Status", &status, None).is_unavailable());
        assert!(!error_from("Status", &Status::unknown("boom"), None).is_unavailable());
    }
}
