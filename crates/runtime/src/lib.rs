//! The embedded container runtime: the CRI services on the machine itself.
