//! Sandboxes: RunPodSandbox, PodSandboxStatus, ListPodSandbox, StopPodSandbox, RemovePodSandbox.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use futures_util::future::join_all;
use rubelet_cri::{RuntimeService, v1};

use crate::subject::{Sandbox, Subject, not_found, refused, remove_sandbox, run, stop_sandbox};

fn state(sandbox: &Sandbox<'_>) -> Result<v1::PodSandboxState> {
    Ok(sandbox.own_status()?.state())
}

fn list(subject: &Subject, filter: v1::PodSandboxFilter) -> Result<BTreeSet<String>> {
    let request = v1::ListPodSandboxRequest {
        filter: Some(filter),
    };
    let listed = subject.ask(subject.client().list_pod_sandbox(request))?;
    Ok(listed.items.into_iter().map(|item| item.id).collect())
}

#[test]
fn the_status_of_a_sandbox_is_as_requested() -> Result<()> {
    let subject = Subject::shared()?;
    let mut config = subject.sandbox_config("shown")?;
    config.annotations = BTreeMap::from([("note".into(), "a value".into())]);
    let sandbox = subject.sandbox_of(config)?;
    let status = sandbox.own_status()?;
    assert_eq!(status.id, sandbox.id);
    assert_eq!(status.metadata, sandbox.config.metadata);
    assert_eq!(status.state(), v1::PodSandboxState::SandboxReady);
    assert_eq!(status.labels, sandbox.config.labels);
    assert_eq!(status.annotations, sandbox.config.annotations);
    assert_eq!(status.runtime_handler, "");
    assert!(status.created_at > 1_600_000_000_000_000_000, "nanoseconds");
    let subnet = subject.runtime.scratch().subnet();
    let network = status.network.unwrap_or_default();
    assert!(
        network.ip.starts_with(subnet.trim_end_matches("0/24")),
        "{network:?}"
    );

    let verbose = v1::PodSandboxStatusRequest {
        pod_sandbox_id: sandbox.id.clone(),
        verbose: true,
    };
    let answer = subject.ask(subject.client().pod_sandbox_status(verbose))?;
    assert!(!answer.info.is_empty());

    let listed = subject.ask(
        subject
            .client()
            .list_pod_sandbox(v1::ListPodSandboxRequest {
                filter: Some(v1::PodSandboxFilter {
                    id: sandbox.id.clone(),
                    ..Default::default()
                }),
            }),
    )?;
    let [item] = listed.items.as_slice() else {
        panic!("one sandbox has this id: {listed:#?}");
    };
    assert_eq!(item.metadata, sandbox.config.metadata);
    assert_eq!(item.labels, sandbox.config.labels);
    assert_eq!(item.annotations, sandbox.config.annotations);
    assert_eq!(item.created_at, status.created_at);
    Ok(())
}

#[test]
fn lists_are_filtered_by_id_state_and_labels() -> Result<()> {
    let subject = Subject::shared()?;
    let labelled = |name: &str, value: &str| -> Result<Sandbox<'_>> {
        let mut config = subject.sandbox_config(name)?;
        config.labels.insert("filtered".into(), value.into());
        subject.sandbox_of(config)
    };
    let (first, second) = (labelled("one", "yes")?, labelled("two", "yes")?);
    let other = labelled("three", "no")?;
    subject.ask(stop_sandbox(subject.client(), &second.id))?;
    let yes = BTreeMap::from([("filtered".to_owned(), "yes".to_owned())]);
    let of = |ids: &[&Sandbox<'_>]| -> BTreeSet<String> {
        ids.iter().map(|sandbox| sandbox.id.clone()).collect()
    };
    let labels = v1::PodSandboxFilter {
        label_selector: yes.clone(),
        ..Default::default()
    };
    assert_eq!(list(&subject, labels)?, of(&[&first, &second]));
    for (state, found) in [
        (v1::PodSandboxState::SandboxReady, &first),
        (v1::PodSandboxState::SandboxNotready, &second),
    ] {
        let filter = v1::PodSandboxFilter {
            label_selector: yes.clone(),
            state: Some(v1::PodSandboxStateValue {
                state: state.into(),
            }),
            ..Default::default()
        };
        assert_eq!(list(&subject, filter)?, of(&[found]));
    }
    let both = v1::PodSandboxFilter {
        id: other.id.clone(),
        label_selector: yes,
        ..Default::default()
    };
    assert_eq!(list(&subject, both)?, BTreeSet::new(), "all parts must fit");
    let by_id = |id: &str| v1::PodSandboxFilter {
        id: id.to_owned(),
        ..Default::default()
    };
    assert_eq!(list(&subject, by_id(&other.id))?, of(&[&other]));
    assert_eq!(
        list(&subject, by_id(&other.id[..13]))?,
        of(&[&other]),
        "the beginning of an id will do, as crictl gives it"
    );
    assert_eq!(list(&subject, by_id("0000000000000"))?, BTreeSet::new());
    Ok(())
}

#[test]
fn a_prefix_of_an_id_identifies_a_sandbox() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("short")?;
    let request = v1::PodSandboxStatusRequest {
        pod_sandbox_id: sandbox.id[..13].to_owned(),
        verbose: false,
    };
    let answer = subject.ask(subject.client().pod_sandbox_status(request))?;
    assert_eq!(answer.status.unwrap_or_default().id, sandbox.id);
    Ok(())
}

#[test]
fn one_pod_and_attempt_has_one_sandbox() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("twice")?;
    let again = refused(subject.ask(run(subject.client(), &sandbox.config, "")));
    if subject.is_embedded() {
        assert!(again.is_already_exists(), "{again}");
    }
    // The next attempt is another sandbox, and the first one's name is free when it is removed.
    let mut next = sandbox.config.clone();
    next.metadata.as_mut().unwrap().attempt = 1;
    let second = subject.sandbox_of(next)?;
    assert_ne!(second.id, sandbox.id);
    let config = sandbox.config.clone();
    drop(sandbox);
    subject.sandbox_of(config)?;
    Ok(())
}

#[test]
fn one_of_concurrent_creations_of_a_sandbox_wins() -> Result<()> {
    let subject = Subject::shared()?;
    let config = subject.sandbox_config("race")?;
    let answers = subject.ask(join_all((0..5).map(|_| run(subject.client(), &config, ""))));
    let made: Vec<_> = answers.into_iter().filter_map(Result::ok).collect();
    let [id] = made.as_slice() else {
        panic!("{} sandboxes were made", made.len());
    };
    let sandbox = Sandbox {
        subject: &subject,
        id: id.clone(),
        config,
    };
    assert_eq!(state(&sandbox)?, v1::PodSandboxState::SandboxReady);
    let name = v1::PodSandboxFilter {
        label_selector: sandbox.config.labels.clone(),
        ..Default::default()
    };
    assert_eq!(list(&subject, name)?.len(), 1, "the losers leave nothing");
    Ok(())
}

#[test]
fn sandboxes_are_created_and_removed_concurrently() -> Result<()> {
    const PODS: usize = 8;
    let subject = Subject::shared()?;
    let configs: Vec<_> = (0..PODS)
        .map(|_| subject.sandbox_config("crowd"))
        .collect::<Result<_>>()?;
    let answers = subject.ask(join_all(
        configs
            .iter()
            .map(|config| run(subject.client(), config, "")),
    ));
    let mut sandboxes = Vec::new();
    for (answer, config) in answers.into_iter().zip(configs) {
        sandboxes.push(Sandbox {
            subject: &subject,
            id: answer?,
            config,
        });
    }
    let mut addresses = BTreeSet::new();
    for sandbox in &sandboxes {
        addresses.insert(sandbox.ip()?);
    }
    assert_eq!(addresses.len(), PODS, "each has an address of its own");
    let client = subject.client();
    let stopped = subject.ask(join_all(
        sandboxes.iter().map(|one| stop_sandbox(client, &one.id)),
    ));
    assert!(stopped.iter().all(Result::is_ok), "{stopped:#?}");
    let removed = subject.ask(join_all(
        sandboxes.iter().map(|one| remove_sandbox(client, &one.id)),
    ));
    assert!(removed.iter().all(Result::is_ok), "{removed:#?}");
    for sandbox in &sandboxes {
        not_found(sandbox.own_status());
    }
    Ok(())
}

#[test]
fn a_stopped_sandbox_is_not_ready_and_stop_is_idempotent() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("stopped")?;
    let container = sandbox.waiting("main")?;
    let client = subject.client();
    subject.ask(stop_sandbox(client, &sandbox.id))?;
    assert_eq!(state(&sandbox)?, v1::PodSandboxState::SandboxNotready);
    let status = sandbox.status(&container)?;
    assert_eq!(
        status.state(),
        v1::ContainerState::ContainerExited,
        "its containers are ended"
    );
    subject.ask(stop_sandbox(client, &sandbox.id))?;
    assert_eq!(sandbox.ip()?, "", "its address was given back");
    Ok(())
}

#[test]
fn removing_a_sandbox_removes_containers_idempotently() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("removed")?;
    let container = sandbox.waiting("main")?;
    let client = subject.client();
    subject.ask(stop_sandbox(client, &sandbox.id))?;
    subject.ask(remove_sandbox(client, &sandbox.id))?;
    not_found(sandbox.own_status());
    not_found(sandbox.status(&container));
    subject.ask(remove_sandbox(client, &sandbox.id))?;
    subject.ask(stop_sandbox(client, &sandbox.id))?;
    not_found(sandbox.create(sandbox.script("late", "true")));
    Ok(())
}

#[test]
fn removing_a_ready_sandbox_kills_its_containers() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("forced")?;
    let container = sandbox.waiting("main")?;
    let pid = subject.truth.pid(&container)?;
    subject.ask(remove_sandbox(subject.client(), &sandbox.id))?;
    not_found(sandbox.own_status());
    not_found(sandbox.status(&container));
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    Ok(())
}

#[test]
fn concurrent_stops_and_removals_of_a_sandbox_succeed() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("melee")?;
    sandbox.waiting("main")?;
    let client = subject.client();
    let stopped = subject.ask(join_all((0..4).map(|_| stop_sandbox(client, &sandbox.id))));
    assert!(stopped.iter().all(Result::is_ok), "{stopped:#?}");
    let removed = subject.ask(join_all(
        (0..4).map(|_| remove_sandbox(client, &sandbox.id)),
    ));
    assert!(removed.iter().any(Result::is_ok), "{removed:#?}");
    if subject.is_embedded() {
        assert!(removed.iter().all(Result::is_ok), "{removed:#?}");
    }
    not_found(sandbox.own_status());
    Ok(())
}

#[test]
fn stop_and_remove_of_a_missing_sandbox_succeed() -> Result<()> {
    let subject = Subject::shared()?;
    let client = subject.client();
    let absent = "f".repeat(64);
    let request = v1::PodSandboxStatusRequest {
        pod_sandbox_id: absent.clone(),
        verbose: false,
    };
    not_found(subject.ask(client.pod_sandbox_status(request)));
    subject.ask(stop_sandbox(client, &absent))?;
    subject.ask(remove_sandbox(client, &absent))?;
    Ok(())
}

#[test]
fn a_missing_handler_is_refused_by_name() -> Result<()> {
    let subject = Subject::shared()?;
    let config = subject.sandbox_config("handled")?;
    let error = refused(subject.ask(run(subject.client(), &config, "nosuch")));
    assert!(error.message.contains("nosuch"), "{error}");
    // Nothing of it is left: the same pod starts without it.
    subject.sandbox_of(config)?;
    Ok(())
}

#[test]
fn a_sandbox_without_a_name_is_refused() -> Result<()> {
    let subject = Subject::shared()?;
    let mut config = subject.sandbox_config("nameless")?;
    config.metadata = None;
    subject.invalid(subject.ask(run(subject.client(), &config, "")));
    let request = v1::RunPodSandboxRequest::default();
    subject.invalid(subject.ask(subject.client().run_pod_sandbox(request)));
    Ok(())
}

#[test]
fn sandbox_status_lists_containers_newest_first() -> Result<()> {
    let subject = Subject::shared()?;
    if !subject.is_embedded() {
        subject.skip("containerd does not tell them");
        return Ok(());
    }
    let sandbox = subject.sandbox("members")?;
    let mut wanted = Vec::new();
    for attempt in 0..3 {
        let mut config = sandbox.script("main", "true");
        config.metadata.get_or_insert_default().attempt = attempt;
        wanted.insert(0, sandbox.create(config)?);
    }
    let request = v1::PodSandboxStatusRequest {
        pod_sandbox_id: sandbox.id.clone(),
        verbose: false,
    };
    let answer = subject.ask(subject.client().pod_sandbox_status(request))?;
    assert!(answer.timestamp > 0);
    let told: Vec<_> = answer
        .containers_statuses
        .into_iter()
        .map(|one| one.id)
        .collect();
    assert_eq!(told, wanted);
    Ok(())
}
