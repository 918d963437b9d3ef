//! The next instance of a container: created before the runtime has reported the exit of the
//! previous one, started once it has.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use rubelet_api::container::Container;
use rubelet_base::{ContainerId, SandboxId};
use rubelet_node_state::start_failure::StartFailure;
use rubelet_pod_plan::cri_config::labels::AHEAD_OF;
use tracing::debug;

use super::Images;
use crate::pod_task::{
    PodTask,
    apply::{Flow, removal},
};

impl PodTask {
    /// Creates the instance after `before`, if that takes nothing but the call itself. What fails
    /// here is retried, and reported, when the exit is known.
    pub(in crate::pod_task) async fn precreate_container(
        &mut self,
        name: &str,
        sandbox: &SandboxId,
        restart_count: u32,
        before: &ContainerId,
    ) -> (Flow, bool) {
        // Before the attempt, so that one that fails is not repeated for the same exit.
        self.history.note_precreate(name, before);
        let pod = Arc::clone(&self.pod);
        let Some(container) = pod.spec.container(name).filter(|_| self.is_prepared()) else {
            return (Flow::Continue, true);
        };
        let mut control = self.control.clone();
        // Cancel safety: as for a start, the list that follows finds what an abandoned call made.
        let made = tokio::select! {
            biased;
            made = self.try_precreate(container, sandbox, restart_count, before) => made,
            () = removal(&mut control) => Err(StartFailure::new("Interrupted", "the pod is to end")),
        };
        if let Err(failure) = made {
            debug!(
                pod = %pod.name, container = name, error = %failure.message,
                "The next instance of a container was not made ahead"
            );
            self.context.pleg.mark_unknown(&pod.uid);
            return (Flow::Stop, false);
        }
        (Flow::Continue, true)
    }

    async fn try_precreate(
        &mut self,
        container: &Container,
        sandbox: &SandboxId,
        restart_count: u32,
        before: &ContainerId,
    ) -> Result<(), StartFailure> {
        let own = self.context.images.present(&self.pod, container).await?;
        let Some(own) = own else {
            return Ok(());
        };
        let images = Images {
            own,
            volumes: BTreeMap::new(),
        };
        let mut config = self
            .container_config(container, restart_count, images)
            .await?;
        let before = before.as_str().to_owned();
        config.annotations.insert(AHEAD_OF.to_owned(), before);
        let inputs = self.sandbox_inputs().await?;
        self.create(container, sandbox, config, inputs).await?;
        Ok(())
    }

    /// Starts what was made ahead, now that a start is due.
    pub(in crate::pod_task) async fn start_precreated(
        &mut self,
        name: &str,
        made: &ContainerId,
        after_exit: Option<Timestamp>,
    ) -> (Flow, bool) {
        self.history.count_precreated(name, made);
        if let Some(finished_at) = after_exit {
            self.note_restart(name, finished_at);
            self.context.records.flush().await;
        }
        self.start_created(name, made).await
    }
}
