//! The next instance of a container: made while the runtime has not told the end of the one before,
//! started when it has.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use rubelet_api::container::Container;
use rubelet_base::{ContainerId, SandboxId};
use rubelet_pod_plan::cri_config::labels::AHEAD_OF;
use tracing::debug;

use super::Images;
use crate::pod_task::{
    PodTask, StartFailure,
    apply::{Flow, removal},
};

impl PodTask {
    /// Makes the instance after `before`, if that takes nothing but the call itself. What fails here
    /// is tried again, and told, when the end is known.
    pub(in crate::pod_task) async fn make_ahead(
        &mut self,
        name: &str,
        sandbox: &SandboxId,
        restart_count: u32,
        before: &ContainerId,
    ) -> (Flow, bool) {
        self.history.note_ahead(name, before);
        let pod = Arc::clone(&self.pod);
        let Some(container) = pod.spec.container(name).filter(|_| self.is_prepared()) else {
            return (Flow::Continue, true);
        };
        let mut control = self.control.clone();
        // Cancel safety: as for a start, the list that follows finds what an abandoned call made.
        let made = tokio::select! {
            biased;
            made = self.try_ahead(container, sandbox, restart_count, before) => made,
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

    async fn try_ahead(
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
    pub(in crate::pod_task) async fn start_made(
        &mut self,
        name: &str,
        made: &ContainerId,
        after_exit: Option<Timestamp>,
    ) -> (Flow, bool) {
        self.history.count_ahead(name, made);
        if let Some(finished_at) = after_exit {
            self.note_restart(name, finished_at).await;
        }
        self.start_created(name, made).await
    }
}
