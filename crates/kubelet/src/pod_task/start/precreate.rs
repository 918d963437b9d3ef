//! Precreates the next instance of a container before the runtime reports the exit of the previous
//! one, and starts it afterwards.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use rubelet_api::container::Container;
use rubelet_base::{ContainerId, SandboxId};
use rubelet_node_state::start_failure::StartFailure;
use rubelet_pod_plan::cri_config::labels::PRECREATED_AFTER;
use tracing::debug;

use super::ContainerImages;
use crate::pod_task::{
    PodTask,
    apply::{StepError, StepOutcome, removal},
};

impl PodTask {
    /// Creates the instance after `before`, if its image is present and the host is prepared. A
    /// failure is retried, and reported, after the runtime has reported the exit.
    pub(in crate::pod_task) async fn precreate_container(
        &mut self,
        name: &str,
        sandbox: &SandboxId,
        restart_count: u32,
        before: &ContainerId,
    ) -> StepOutcome {
        // Before the attempt, so that a failed one is not repeated for the same exit.
        self.history.note_precreate(name, before);
        let pod = Arc::clone(&self.pod);
        let Some(container) = pod.spec.container(name).filter(|_| self.is_prepared()) else {
            return StepOutcome::Done;
        };
        let mut control = self.control.clone();
        // Cancel safety: as for a start, the list that follows finds what an abandoned call
        // created.
        let created = tokio::select! {
            biased;
            created = self.try_precreate(container, sandbox, restart_count, before) => {
                created.map_err(StepError::Failed)
            }
            () = removal(&mut control) => Err(StepError::Interrupted),
        };
        if let Err(error) = created {
            let error = match &error {
                StepError::Interrupted => "the pod is being removed",
                StepError::Failed(failure) => &failure.message,
            };
            debug!(
                pod = %pod.name, container = name, %error,
                "Failed to precreate the next instance of a container"
            );
            self.context.pleg.mark_unknown(&pod.uid);
            return StepOutcome::Replan;
        }
        StepOutcome::Done
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
        let images = ContainerImages {
            own,
            volumes: BTreeMap::new(),
        };
        let mut config = self
            .container_config(container, restart_count, images)
            .await?;
        let before = before.as_str().to_owned();
        config
            .annotations
            .insert(PRECREATED_AFTER.to_owned(), before);
        let inputs = self.sandbox_inputs().await?;
        self.create(container, sandbox, config, inputs).await?;
        Ok(())
    }

    /// Starts a precreated container, now that its start is due.
    pub(in crate::pod_task) async fn start_precreated(
        &mut self,
        name: &str,
        made: &ContainerId,
        after_exit: Option<Timestamp>,
    ) -> StepOutcome {
        self.history.count_precreated(name, made);
        if let Some(finished_at) = after_exit {
            self.note_restart(name, finished_at);
            self.context.records.flush().await;
        }
        self.start_created(name, made).await
    }
}
