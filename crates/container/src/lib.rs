//! Starts a container from an OCI specification.
