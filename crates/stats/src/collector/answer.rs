//! Answers of sources.

use std::time::Duration;

use rubelet_base::ErrorChain;
use rubelet_cri::CriError;

/// How long a request waits for each source. Metrics servers give up after 10 s.
pub(super) const PATIENCE: Duration = Duration::from_secs(4);

/// A value, or why there is none, for an operator.
pub(super) type SourceAnswer<T> = Result<T, String>;

/// A runtime that has no such numbers is not a problem: those of the kernel are all that exist.
pub(super) fn unless_unimplemented<T: Default>(answer: Result<T, CriError>) -> SourceAnswer<T> {
    match answer {
        Ok(value) => Ok(value),
        Err(error) if error.is_unimplemented() => Ok(T::default()),
        Err(error) => Err(ErrorChain(&error).to_string()),
    }
}
