//! The codes of gRPC by their names.

/// Names in the order of their numbers.
const NAMES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// The status code of a gRPC answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) u8);

impl Code {
    /// The runtime cannot be reached.
    pub(crate) const UNAVAILABLE: Self = Self(14);

    /// The code of that name, in any case.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let place = NAMES.iter().position(|it| it.eq_ignore_ascii_case(name))?;
        u8::try_from(place).ok().map(Self)
    }

    /// All names, for messages.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        NAMES.into_iter()
    }
}
