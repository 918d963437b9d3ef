//! The local API on its unix socket: paths and types of Kubernetes, for programs and for kubectl.

#![allow(
    clippy::unwrap_used,
    reason = "the location of a failure says which check failed"
)]

#[path = "../outside/outside.rs"]
mod outside;

mod held;
mod kubectl;
mod paths;
mod session_client;
mod session_leaks;
mod sessions;
mod watch;

use std::sync::{Arc, Mutex, PoisonError, Weak};

use outside::PodText;
use rubelet_testbed::{Agent, TestRuntime};

/// A node with pods that no test changes.
struct Shown {
    agent: Agent,
    _runtime: TestRuntime,
}

impl Shown {
    /// One node for all concurrent tests of this process.
    fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<Shown>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = shared.upgrade() {
            return running;
        }
        let (runtime, agent) = outside::with_pods(&[
            PodText::new("web").saying("hello from web"),
            PodText::new("db").init("prepare").container("sidecar"),
            PodText::new("apart").namespace("other"),
        ]);
        let started = Arc::new(Self {
            agent,
            _runtime: runtime,
        });
        *shared = Arc::downgrade(&started);
        started
    }
}
