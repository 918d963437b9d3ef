//! The sessions that a runtime in this process offers to streaming servers.

use std::sync::Arc;

use async_trait::async_trait;
use rubelet_cri::{CriResult, v1};

use crate::{Duplex, PortsEnd, RemoteProcess};

/// A runtime that serves sessions directly, without a streaming URL.
#[async_trait]
pub trait Sessions: Send + Sync + 'static {
    /// Starts a command in a running container.
    ///
    /// # Errors
    /// There is no such running container, or the command can't be started.
    async fn exec(&self, request: v1::ExecRequest) -> CriResult<RemoteProcess>;

    /// Attaches to the first process of a running container: output from now on, and input if the
    /// container has one. Any number of attachments may exist at the same time.
    ///
    /// # Errors
    /// There is no such running container, or it has no requested input or terminal.
    async fn attach(&self, request: v1::AttachRequest) -> CriResult<RemoteProcess>;

    /// Opens the network of a sandbox for connections to its loopback ports.
    ///
    /// # Errors
    /// There is no such sandbox, or it is not running.
    async fn port_forward(&self, sandbox_id: &str) -> CriResult<Arc<dyn PortDialer>>;
}

/// Connects to ports of a pod.
#[async_trait]
pub trait PortDialer: Send + Sync + 'static {
    /// Connects to a port of the pod's loopback interface, IPv4 first and then IPv6.
    ///
    /// # Errors
    /// Nothing listens there, or the pod is gone. The message is for the client.
    async fn dial(&self, port: u16) -> CriResult<Duplex>;

    /// Resolves when no more connections are possible, with the reason. By default it never does, and
    /// only [`dial`](Self::dial) fails.
    async fn ended(&self) -> PortsEnd {
        std::future::pending().await
    }
}
