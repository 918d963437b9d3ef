//! From the text of a manifest to a pod, and back to the Kubernetes form.

mod broken;
mod documents;
mod good;
mod hashes;
mod invalid;
mod invalid_rest;
mod mutation;
mod refused;
mod round_trip;
mod support;
