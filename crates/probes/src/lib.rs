//! One attempt of a network probe or of an `httpGet` hook. What an attempt says is what the kubelet
//! would say, word for word, because operators read it in events and search for it.
//!
//! Thresholds, periods and what follows from a result are not here. An attempt opens its own
//! sockets, runs inside the task that awaits it, and leaves nothing behind when it is dropped.
//! Every socket is closed by a reset after the complete answer, so that neither this machine nor
//! the pod keeps one in TIME_WAIT.

mod dial;
mod grpc;
mod http;
mod http2;
mod prober;
mod report;
mod stream;
mod target;
mod tcp;
mod tls;
mod wire;
mod words;

pub use prober::Prober;
pub use report::{MAX_OUTPUT, Report, Verdict};
pub use words::quoted;
