//! Registers the node: creates its object, or corrects the one that is there.

use rubelet_kube::ApiError;
use rubelet_node_plan::node_status::{
    object::Node,
    patch::patch,
    registration::{correct, initial},
    update::NodeObservation,
};
use tracing::info;

use super::{api::NodeApi, observed_node::change, status::StatusTask};

impl<A: NodeApi> StatusTask<A> {
    /// One try.
    pub(super) async fn register(&mut self, observed: &NodeObservation) -> Result<(), ApiError> {
        let first = initial(&self.settings, &self.facts);
        let fresh = self.compute(observed, &first);
        let name = &self.settings.name;
        info!(node = %name, "Attempting to register node");
        self.metrics.node_startup.attempted();
        let registered = match self.api.create_node(&fresh.to_json()).await {
            Ok(node) => {
                info!(node = %name, "Successfully registered node");
                self.metrics.node_startup.registered();
                self.note_ready(&node);
                node
            }
            // Who may not create nodes may still have one that others created.
            Err(error) if error.is_already_exists() || error.is_forbidden() => {
                match self.api.get_node().await {
                    Ok(node) => {
                        info!(node = %name, "Node was previously registered");
                        self.take_over(observed, node).await?
                    }
                    Err(missing) if missing.is_not_found() => return Err(error),
                    Err(error) => return Err(error),
                }
            }
            Err(error) => return Err(error),
        };
        self.registered = true;
        self.reported(true);
        change(&self.seen, |seen| seen.answered(registered));
        Ok(())
    }

    /// Corrects a node that was there, and reports its status at once.
    async fn take_over(
        &mut self,
        observed: &NodeObservation,
        node: Node,
    ) -> Result<Node, ApiError> {
        let mut corrected = node.clone();
        correct(&self.settings, &self.facts, &mut corrected);
        let wanted = self.compute(observed, &corrected);
        match patch(&node, &wanted) {
            Some(patch) => self.api.patch_node(&patch).await,
            None => Ok(node),
        }
    }
}
