//! The name of the embedded runtime.

/// Value that selects the embedded runtime even if an empty endpoint would select another one.
pub const EMBEDDED: &str = "embedded";
