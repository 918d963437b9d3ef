//! gRPC status codes by name.

/// Names, in the order of the codes.
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

/// A gRPC status code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) u8);

impl Code {
    /// The runtime is not reachable.
    pub(crate) const UNAVAILABLE: Self = Self(14);

    /// The code of this name, case-insensitively.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let place = NAMES.iter().position(|it| it.eq_ignore_ascii_case(name))?;
        u8::try_from(place).ok().map(Self)
    }

    /// All names, for messages.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        NAMES.into_iter()
    }
}
