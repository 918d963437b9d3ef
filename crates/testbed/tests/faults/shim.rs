//! SIGKILL of a pod's shim.

use std::time::Duration;

use anyhow::Result;
use rubelet_cri::RuntimeService;
use rubelet_cri::v1::{ContainerState, PodSandboxState};
use rubelet_testbed::cleanup::processes;
use rubelet_testbed::wait;

use crate::lab::{Lab, shim_of};
use crate::subject::{Sandbox, TIMEOUT, WAITING, exec, run, start};

/// Waits until the runtime has noticed the pod's end.
fn await_end(sandbox: &Sandbox<'_>) -> Result<()> {
    wait::until("the sandbox is not ready", TIMEOUT, || {
        let state = sandbox.own_status()?.state();
        Ok((state == PodSandboxState::SandboxNotready).then_some(()))
    })
}

#[test]
fn a_pod_without_its_shim_is_not_ready() -> Result<()> {
    let lab = Lab::start()?;
    for runs_meanwhile in [true, false] {
        let sandbox = lab.subject.sandbox("orphaned")?;
        let beside = lab.subject.sandbox("beside")?;
        let other = beside.waiting("main")?;
        let running = sandbox.waiting("running")?;
        let ended = sandbox.start(sandbox.script("ended", "exit 4"))?;
        sandbox.ended(&ended)?;
        let created = sandbox.create(sandbox.script("created", WAITING))?;
        let pid = lab.subject.truth.pid(&running)?;
        if !runs_meanwhile {
            lab.served().kill9()?;
        }
        processes::kill(shim_of(&sandbox.id)?)?;
        if !runs_meanwhile {
            lab.subject.resume()?;
        }
        await_end(&sandbox)?;
        let status = sandbox.ended(&running)?;
        assert_eq!((status.exit_code, status.reason.as_str()), (255, "Unknown"));
        assert!(
            status.message.contains("shim exited unexpectedly"),
            "{}",
            status.message
        );
        assert_eq!(
            sandbox.status(&ended)?.exit_code,
            4,
            "what was known stays known"
        );
        assert_ne!(
            sandbox.status(&created)?.state(),
            ContainerState::ContainerRunning
        );
        wait::until("its processes are gone", TIMEOUT, || {
            Ok((!std::path::Path::new(&format!("/proc/{pid}")).exists()).then_some(()))
        })?;
        assert_eq!(lab.subject.truth.exec(&other, &["echo", "yes"])?, "yes\n");
        assert!(sandbox.create(sandbox.script("late", "true")).is_err());
        // The next attempt of the same pod works beside the rest of this one.
        let mut next = sandbox.config.clone();
        next.metadata.as_mut().unwrap().attempt = 1;
        let next = lab.subject.sandbox_of(next)?;
        next.output("main", "true")?;
        drop((sandbox, beside, next));
        lab.remove_all()?;
        lab.assert_clean()?;
    }
    Ok(())
}

#[test]
fn a_shim_killed_at_any_moment_fails_one_pod_only() -> Result<()> {
    let lab = Lab::start()?;
    for step in 0..16_u64 {
        let config = lab.subject.sandbox_config("victim")?;
        lab.subject.ask(async {
            let client = lab.subject.client();
            let id = run(client, &config, "").await?;
            let sandbox = std::mem::ManuallyDrop::new(Sandbox {
                subject: &lab.subject,
                id: id.clone(),
                config,
            });
            let life = async {
                let container = sandbox.creation(sandbox.script("main", WAITING)).await?;
                start(client, &container).await?;
                exec(client, &container, &["sleep", "1"], 10).await?;
                Ok::<_, anyhow::Error>(())
            };
            let kill = async {
                tokio::time::sleep(Duration::from_millis(step * 3)).await;
                processes::kill(shim_of(&id)?)
            };
            let (_, killed) = futures_util::join!(life, kill);
            killed
        })?;
        lab.assert_works()?;
        lab.assert_consistent()?;
        lab.remove_all()?;
        lab.assert_clean()?;
    }
    let version = lab.subject.client().version(Default::default());
    lab.subject.ask(version)?;
    Ok(())
}
