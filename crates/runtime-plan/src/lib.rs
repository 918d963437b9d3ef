//! What the embedded runtime decides: from CRI configurations to OCI specifications, states, recovery.
