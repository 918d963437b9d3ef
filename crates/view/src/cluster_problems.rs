//! Problems between this node and its cluster.

use std::sync::{Arc, OnceLock};

use rubelet_api::wire::seconds;
use rubelet_kube::{UnreadableObject, UnreadableObjects};
use tokio::sync::watch;

/// Problems between the node and its cluster, if the node is part of one.
#[derive(Debug, Clone)]
pub struct ClusterProblems {
    /// Why the API server can't be used, in one line.
    pub api_server: watch::Receiver<Option<String>>,
    /// The state of the renewal of the node's certificate if it waits or fails.
    pub certificate: watch::Receiver<Option<String>>,
    /// The problem with the node object.
    pub node: watch::Receiver<Option<String>>,
    /// Fields of the API server's objects that can't be decoded, once the API server can be
    /// reached.
    pub unread: Arc<OnceLock<UnreadableObjects>>,
}

impl ClusterProblems {
    /// For a node that is not part of a cluster.
    #[must_use]
    pub fn none() -> Self {
        Self {
            api_server: watch::channel(None).1,
            certificate: watch::channel(None).1,
            node: watch::channel(None).1,
            unread: Arc::default(),
        }
    }

    /// The fields of the API server's objects that can't be read, each in one line.
    pub(super) fn unread(&self) -> Vec<String> {
        let objects = self.unread.get().map(UnreadableObjects::list);
        let mut lines = Vec::new();
        for UnreadableObject {
            object,
            fields,
            since,
        } in objects.unwrap_or_default()
        {
            let since = seconds(since);
            lines.extend(fields.iter().map(|field| {
                let line = format!("{object}: {field}; cannot be read since {since}");
                // Names come from the server, so they may contain anything.
                line.replace(char::is_control, "?")
            }));
        }
        lines
    }

    /// Resolves when something changes that `line` has not reported yet; never on a standalone
    /// node.
    pub async fn changed(&mut self) {
        tokio::select! {
            Ok(()) = self.api_server.changed() => {}
            Ok(()) = self.certificate.changed() => {}
            Ok(()) = self.node.changed() => {}
            else => std::future::pending().await,
        }
    }

    /// Marks everything that `line` can report as reported.
    pub fn mark_unchanged(&mut self) {
        self.api_server.mark_unchanged();
        self.certificate.mark_unchanged();
        self.node.mark_unchanged();
    }

    /// One line, to be appended to another; empty if all is well.
    pub(super) fn line(&self) -> String {
        let api_server = self.api_server.borrow().clone();
        // Before the node has joined, both report the same problem.
        let certificate = self.certificate.borrow().clone();
        let certificate = certificate.filter(|line| Some(line) != api_server.as_ref());
        let part = |name: &str, problem: Option<String>| {
            problem.map_or(String::new(), |problem| format!(", {name}: {problem}"))
        };
        let node = self.node.borrow().clone();
        part("API server", api_server) + &part("certificate", certificate) + &part("node", node)
    }
}
