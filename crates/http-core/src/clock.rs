//! The wall clock, read where ages are printed and nowhere else.

use jiff::Timestamp;

/// Now.
#[must_use]
pub fn now() -> Timestamp {
    #[expect(
        clippy::disallowed_methods,
        reason = "the clock module is where wall time is read"
    )]
    Timestamp::now()
}
