//! Containers: CreateContainer, StartContainer, ContainerStatus, ListContainers, RemoveContainer.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Result;
use futures_util::future::join_all;
use rubelet_cri::v1::ContainerState;
use rubelet_cri::{RuntimeService, v1};
use rubelet_testbed::images;

use crate::subject::{
    Subject, TIMEOUT, WAITING, not_found, refused, remove, start, status, stop, stop_sandbox,
};

fn list(subject: &Subject, filter: v1::ContainerFilter) -> Result<BTreeSet<String>> {
    let request = v1::ListContainersRequest {
        filter: Some(filter),
    };
    let listed = subject.ask(subject.client().list_containers(request))?;
    Ok(listed.containers.into_iter().map(|item| item.id).collect())
}

#[test]
fn a_container_is_created_runs_and_exits_with_its_code() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("life")?;
    let mut config = sandbox.script("main", "read line < /tmp/gate; exit 7");
    config.annotations = BTreeMap::from([("note".into(), "kept".into())]);
    config.command[2] = "mkfifo /tmp/gate; read line < /tmp/gate; exit 7".into();
    let id = sandbox.create(config.clone())?;
    let created = sandbox.status(&id)?;
    assert_eq!(created.state(), ContainerState::ContainerCreated);
    assert_eq!(created.metadata, config.metadata);
    assert_eq!(created.labels, config.labels);
    assert_eq!(created.annotations, config.annotations);
    assert_eq!(
        created.log_path,
        sandbox.log_path("main").display().to_string()
    );
    let image = created.image.clone().unwrap_or_default();
    assert_eq!(image.image, images::BUSYBOX_IMAGE);
    assert!(!created.image_ref.is_empty());
    assert!(created.created_at > 0);
    assert_eq!((created.started_at, created.finished_at), (0, 0));

    subject.ask(start(subject.client(), &id))?;
    let running = sandbox.status(&id)?;
    assert_eq!(running.state(), ContainerState::ContainerRunning);
    assert!(running.started_at >= created.created_at);
    assert_eq!(running.finished_at, 0);
    let pid = subject.truth.pid(&id)?;
    assert!(Path::new(&format!("/proc/{pid}")).exists());

    // The script creates the fifo a moment after the start. The container's exit may kill the
    // command.
    let open = "while ! [ -p /tmp/gate ]; do sleep 0.05; done; echo > /tmp/gate";
    let client = subject.client();
    subject.ask(crate::subject::exec(client, &id, &["sh", "-c", open], 30))?;
    let ended = sandbox.ended(&id)?;
    assert_eq!(ended.exit_code, 7);
    assert_eq!(ended.reason, "Error");
    assert!(ended.finished_at >= running.started_at);
    assert_eq!(ended.started_at, running.started_at);
    Ok(())
}

#[test]
fn exit_reasons_and_codes_of_signals_are_reported() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("ends")?;
    for (name, script, code, reason) in [
        ("good", "true", 0, "Completed"),
        ("killed", "kill -KILL $$; sleep 1", 137, "Error"),
        ("term", "sh -c 'kill -TERM $$'; exit $?", 143, "Error"),
    ] {
        // Process 1 of a namespace can't kill itself; a child of it can be killed.
        let script = script.replace("kill -KILL $$; sleep 1", "sh -c 'kill -KILL $$'; exit $?");
        let id = sandbox.start(sandbox.script(name, &script))?;
        let ended = sandbox.ended(&id)?;
        assert_eq!(
            (ended.exit_code, ended.reason.as_str()),
            (code, reason),
            "{name}"
        );
    }
    // The first process itself, killed from outside.
    let id = sandbox.waiting("outside")?;
    rubelet_testbed::proc::kill9(subject.truth.pid(&id)?)?;
    let ended = sandbox.ended(&id)?;
    assert_eq!((ended.exit_code, ended.reason.as_str()), (137, "Error"));
    Ok(())
}

#[test]
fn lists_are_filtered_by_id_state_sandbox_and_labels() -> Result<()> {
    let subject = Subject::shared()?;
    let (one, two) = (subject.sandbox("list")?, subject.sandbox("list")?);
    let running = one.waiting("running")?;
    let created = one.create(one.script("created", WAITING))?;
    let elsewhere = two.waiting("elsewhere")?;
    let ended = two.start(two.script("ended", "true"))?;
    two.ended(&ended)?;
    let of = |ids: &[&String]| -> BTreeSet<String> { ids.iter().map(|id| (*id).clone()).collect() };
    let in_one = v1::ContainerFilter {
        pod_sandbox_id: one.id.clone(),
        ..Default::default()
    };
    assert_eq!(list(&subject, in_one.clone())?, of(&[&running, &created]));
    for (state, found) in [
        (ContainerState::ContainerRunning, of(&[&running])),
        (ContainerState::ContainerCreated, of(&[&created])),
        (ContainerState::ContainerExited, BTreeSet::new()),
    ] {
        let filter = v1::ContainerFilter {
            state: Some(v1::ContainerStateValue {
                state: state.into(),
            }),
            ..in_one.clone()
        };
        assert_eq!(list(&subject, filter)?, found, "{state:?}");
    }
    let exited = v1::ContainerFilter {
        pod_sandbox_id: two.id.clone(),
        state: Some(v1::ContainerStateValue {
            state: ContainerState::ContainerExited.into(),
        }),
        ..Default::default()
    };
    assert_eq!(list(&subject, exited)?, of(&[&ended]));
    let labels = v1::ContainerFilter {
        label_selector: BTreeMap::from([
            ("io.kubernetes.pod.name".into(), two.name()),
            ("io.kubernetes.container.name".into(), "elsewhere".into()),
        ]),
        ..Default::default()
    };
    assert_eq!(list(&subject, labels)?, of(&[&elsewhere]));
    let id = v1::ContainerFilter {
        id: elsewhere[..13].to_owned(),
        ..Default::default()
    };
    assert_eq!(list(&subject, id)?, of(&[&elsewhere]));
    let nothing = v1::ContainerFilter {
        id: elsewhere.clone(),
        pod_sandbox_id: one.id.clone(),
        ..Default::default()
    };
    assert_eq!(list(&subject, nothing)?, BTreeSet::new());
    Ok(())
}

#[test]
fn a_container_name_and_attempt_is_unique_in_a_sandbox() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("names")?;
    let first = sandbox.waiting("main")?;
    let again = refused(sandbox.create(sandbox.script("main", "true")));
    if subject.is_embedded() {
        assert!(again.is_already_exists(), "{again}");
    }
    let mut next = sandbox.script("main", "true");
    next.metadata.as_mut().unwrap().attempt = 1;
    let second = sandbox.start(next)?;
    sandbox.ended(&second)?;
    assert!(sandbox.status(&first)?.state() == ContainerState::ContainerRunning);
    subject.ask(remove(subject.client(), &first))?;
    sandbox.waiting("main")?;
    Ok(())
}

#[test]
fn one_of_concurrent_creations_of_a_container_wins() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("race")?;
    let config = sandbox.script("main", WAITING);
    let answers = subject.ask(join_all((0..5).map(|_| sandbox.creation(config.clone()))));
    let made: Vec<_> = answers.into_iter().filter_map(Result::ok).collect();
    assert_eq!(made.len(), 1, "{made:?}");
    let all = v1::ContainerFilter {
        pod_sandbox_id: sandbox.id.clone(),
        ..Default::default()
    };
    assert_eq!(list(&subject, all)?.len(), 1, "the losers leave nothing");
    subject.ask(start(subject.client(), &made[0]))?;
    Ok(())
}

#[test]
fn a_container_starts_once() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("once")?;
    let id = sandbox.create(sandbox.script("main", WAITING))?;
    let client = subject.client();
    let answers = subject.ask(join_all((0..4).map(|_| start(client, &id))));
    assert_eq!(
        answers.iter().filter(|answer| answer.is_ok()).count(),
        1,
        "{answers:#?}"
    );
    for answer in answers.into_iter().filter(Result::is_err) {
        subject.wrong_state(answer);
    }
    subject.wrong_state(subject.ask(start(client, &id)));
    subject.ask(stop(client, &id, 10))?;
    subject.wrong_state(subject.ask(start(client, &id)));
    let after = sandbox.status(&id)?;
    assert_eq!(after.state(), ContainerState::ContainerExited);
    Ok(())
}

#[test]
fn containers_of_a_sandbox_are_created_concurrently() -> Result<()> {
    const CONTAINERS: usize = 6;
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("many")?;
    let client = subject.client();
    let ids = subject.ask(join_all((0..CONTAINERS).map(|number| {
        let config = sandbox.script(&format!("c{number}"), WAITING);
        let sandbox = &sandbox;
        async move {
            let id = sandbox.creation(config).await?;
            start(client, &id).await?;
            Ok::<_, rubelet_cri::CriError>(id)
        }
    })));
    let ids: Vec<String> = ids.into_iter().collect::<Result<_, _>>()?;
    for id in &ids {
        assert_eq!(
            sandbox.status(id)?.state(),
            ContainerState::ContainerRunning
        );
    }
    let ended = subject.ask(join_all(ids.iter().map(|id| async move {
        stop(client, id, 10).await?;
        remove(client, id).await
    })));
    assert!(ended.iter().all(Result::is_ok), "{ended:#?}");
    for id in &ids {
        not_found(sandbox.status(id));
    }
    Ok(())
}

#[test]
fn a_container_is_removed_in_any_state_idempotently() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("removal")?;
    let client = subject.client();
    let created = sandbox.create(sandbox.script("created", WAITING))?;
    let running = sandbox.waiting("running")?;
    let ended = sandbox.start(sandbox.script("ended", "true"))?;
    sandbox.ended(&ended)?;
    let pid = subject.truth.pid(&running)?;
    for id in [&created, &running, &ended] {
        subject.ask(remove(client, id))?;
        not_found(sandbox.status(id));
        subject.ask(remove(client, id))?;
    }
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
    Ok(())
}

#[test]
fn concurrent_removals_of_a_container_leave_nothing() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("removals")?;
    let id = sandbox.waiting("main")?;
    let client = subject.client();
    let answers = subject.ask(join_all((0..4).map(|_| remove(client, &id))));
    assert!(answers.iter().any(Result::is_ok), "{answers:#?}");
    if subject.is_embedded() {
        assert!(answers.iter().all(Result::is_ok), "{answers:#?}");
    }
    not_found(sandbox.status(&id));
    Ok(())
}

#[test]
fn stop_and_remove_of_a_missing_container_succeed() -> Result<()> {
    let subject = Subject::shared()?;
    let client = subject.client();
    let absent = "e".repeat(64);
    not_found(subject.ask(status(client, &absent)));
    not_found(subject.ask(start(client, &absent)));
    subject.ask(stop(client, &absent, 0))?;
    subject.ask(remove(client, &absent))?;
    Ok(())
}

#[test]
fn a_prefix_of_an_id_identifies_a_container() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("short")?;
    let id = sandbox.waiting("main")?;
    assert_eq!(sandbox.status(&id[..13])?.id, id);
    subject.ask(stop(subject.client(), &id[..13], 10))?;
    subject.ask(remove(subject.client(), &id[..13]))?;
    not_found(sandbox.status(&id));
    Ok(())
}

#[test]
fn a_stopped_sandbox_accepts_no_container() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("closed")?;
    let before = sandbox.create(sandbox.script("before", WAITING))?;
    subject.ask(stop_sandbox(subject.client(), &sandbox.id))?;
    if subject.is_embedded() {
        // Containerd creates it, and fails at the start.
        subject.wrong_state(sandbox.create(sandbox.script("after", WAITING)));
    }
    subject.wrong_state(subject.ask(start(subject.client(), &before)));
    Ok(())
}

#[test]
fn an_exited_container_does_not_block_the_next_one() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("row")?;
    for attempt in 0..5 {
        let mut config = sandbox.script("main", "echo once");
        config.metadata.as_mut().unwrap().attempt = attempt;
        config.log_path = format!("main.{attempt}.log");
        let id = sandbox.start(config)?;
        assert_eq!(sandbox.ended(&id)?.exit_code, 0);
        rubelet_testbed::wait::until("its log is written", TIMEOUT, || {
            Ok((sandbox.log(&format!("main.{attempt}"))?.len() == 1).then_some(()))
        })?;
    }
    Ok(())
}
