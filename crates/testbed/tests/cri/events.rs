//! GetContainerEvents.

use std::pin::pin;
use std::time::Duration;

use anyhow::{Context as _, Result};
use futures_util::StreamExt;
use rubelet_cri::v1::ContainerEventType as Kind;
use rubelet_cri::{ContainerEvent, RuntimeService};

use crate::subject::{
    Subject, TIMEOUT, WAITING, remove, remove_sandbox, start, stop, stop_sandbox,
};

/// The events of the sandbox `id` and its containers while `work` runs, up to the deletion of the
/// sandbox.
async fn collect(
    subject: &Subject,
    id: &str,
    work: impl Future<Output = Result<()>>,
) -> Result<Vec<(String, Kind)>> {
    let mut events = pin!(subject.client().container_events());
    let mut found = Vec::new();
    let gather = async {
        while let Some(event) = events.next().await {
            let event: ContainerEvent = event?;
            if event.sandbox.as_deref() == Some(id) || event.container == id {
                let over = event.container == id && event.kind == Kind::ContainerDeletedEvent;
                found.push((event.container, event.kind));
                if over {
                    return Ok(());
                }
            }
        }
        anyhow::bail!("the stream has ended")
    };
    let both = async { futures_util::try_join!(gather, work).map(drop) };
    let done = tokio::time::timeout(TIMEOUT, both).await;
    done.context("not all events came")??;
    Ok(found)
}

#[test]
fn each_change_is_reported_once_and_in_order() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("told")?;
    let client = subject.client();
    let mut container = String::new();
    let id = sandbox.id.clone();
    let found = subject.ask(collect(&subject, &id, async {
        // The start of the stream can't be awaited; another container could show it, but a short
        // sleep is enough.
        tokio::time::sleep(Duration::from_millis(300)).await;
        container = sandbox.creation(sandbox.script("main", WAITING)).await?;
        start(client, &container).await?;
        stop(client, &container, 10).await?;
        remove(client, &container).await?;
        stop_sandbox(client, &id).await?;
        remove_sandbox(client, &id).await?;
        Ok(())
    }))?;
    let of = |id: &str| -> Vec<Kind> {
        found
            .iter()
            .filter(|(one, _)| one == id)
            .map(|(_, kind)| *kind)
            .collect()
    };
    use Kind::{
        ContainerCreatedEvent, ContainerDeletedEvent, ContainerStartedEvent, ContainerStoppedEvent,
    };
    assert_eq!(
        of(&container),
        [
            ContainerCreatedEvent,
            ContainerStartedEvent,
            ContainerStoppedEvent,
            ContainerDeletedEvent
        ]
    );
    // Events that were queued before the stream started may arrive too.
    let own = of(&id);
    assert!(
        own.ends_with(&[ContainerStoppedEvent, ContainerDeletedEvent]),
        "{own:?}"
    );
    Ok(())
}

#[test]
fn an_exit_is_reported_to_every_subscriber() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("listeners")?;
    let id = sandbox.waiting("main")?;
    let pid = subject.truth.pid(&id)?;
    let listen = || async {
        let mut events = subject.client().container_events();
        while let Some(event) = events.next().await {
            let event = event?;
            if event.container == id && event.kind == Kind::ContainerStoppedEvent {
                return Ok(());
            }
        }
        anyhow::bail!("the stream has ended")
    };
    let done = subject.ask(async {
        let kill = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            rubelet_testbed::proc::kill9(pid).map(drop)
        };
        // Containerd 2.1 and later send events to all subscribers; before, each event reached one
        // of them.
        let all = async { futures_util::try_join!(listen(), listen(), kill) };
        tokio::time::timeout(TIMEOUT, all).await
    });
    done.context("not everyone was told")??;
    Ok(())
}
