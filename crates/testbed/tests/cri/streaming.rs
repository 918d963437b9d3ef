//! Exec, Attach and PortForward return URLs; checkpoints are refused.

use anyhow::Result;
use rubelet_cri::{RuntimeService, v1};
use rubelet_testbed::wait;

use crate::subject::{Runtime, Subject, TIMEOUT, refused};

#[test]
fn sessions_are_offered_by_urls() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("streams")?;
    let id = sandbox.waiting("main")?;
    let client = subject.client();
    let exec = v1::ExecRequest {
        container_id: id.clone(),
        cmd: vec!["true".into()],
        stdout: true,
        ..Default::default()
    };
    let attach = v1::AttachRequest {
        container_id: id,
        stdout: true,
        ..Default::default()
    };
    let forward = v1::PortForwardRequest {
        pod_sandbox_id: sandbox.id.clone(),
        port: vec![80],
    };
    let answers = subject.ask(async {
        [
            client.exec(exec).await.map(|answer| answer.url),
            client.attach(attach).await.map(|answer| answer.url),
            client.port_forward(forward).await.map(|answer| answer.url),
        ]
    });
    for answer in answers {
        assert!(answer?.starts_with("http://"));
    }
    Ok(())
}

#[test]
fn checkpoints_are_refused() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("checkpoint")?;
    let request = v1::CheckpointContainerRequest {
        container_id: sandbox.waiting("main")?,
        location: "/nowhere/checkpoint.tar".into(),
        timeout: 5,
    };
    let error = refused(subject.ask(subject.client().checkpoint_container(request)));
    if subject.is_embedded() {
        assert!(error.is_unimplemented(), "{error}");
    }
    Ok(())
}

/// Other runtimes have no agent beside them that would do it.
#[test]
fn memory_is_returned_when_the_work_is_done() -> Result<()> {
    let subject = Subject::alone()?;
    let Runtime::Served(runtime) = &*subject.runtime else {
        return Ok(());
    };
    subject.sandbox("work")?.waiting("main")?;
    wait::until("memory is returned", TIMEOUT, || {
        let log = std::fs::read_to_string(runtime.log_path())?;
        let returned = log.contains("Returned memory to the kernel");
        Ok(returned.then_some(()))
    })
}
