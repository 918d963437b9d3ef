//! From the text of a manifest to a pod, and back to the Kubernetes form.

mod api_pods;
mod broken;
mod documents;
mod ephemeral;
mod good;
mod hashes;
mod hooks;
mod invalid;
mod invalid_rest;
mod mutation;
mod pod_resources;
mod probes;
mod refused;
mod restarts;
mod round_trip;
mod support;
