//! SIGKILL of the runtime at any moment of a pod's lifecycle.

use std::time::Duration;

use anyhow::Result;
use rubelet_cri::v1;
use rubelet_testbed::images;

use crate::lab::Lab;
use crate::subject::{Sandbox, WAITING, remove, remove_sandbox, run, start, stop, stop_sandbox};

/// One lifecycle of a pod, call by call; an error ends it.
async fn run_lifecycle(lab: &Lab, sandbox: &Sandbox<'_>) -> Result<()> {
    let client = lab.subject.client();
    let mut config = sandbox.script("main", WAITING);
    config.mounts = vec![v1::Mount {
        container_path: "/image".into(),
        readonly: true,
        image: Some(v1::ImageSpec {
            image: images::NAMED_USER.into(),
            ..Default::default()
        }),
        image_sub_path: "etc".into(),
        ..Default::default()
    }];
    let container = sandbox.creation(config).await?;
    start(client, &container).await?;
    stop(client, &container, 5).await?;
    remove(client, &container).await?;
    stop_sandbox(client, &sandbox.id).await?;
    remove_sandbox(client, &sandbox.id).await?;
    Ok(())
}

#[test]
fn a_runtime_killed_at_any_moment_recovers_its_state() -> Result<()> {
    let lab = Lab::start()?;
    // A lifecycle takes some 50 ms on an idle machine; the kill times cover all of its phases.
    for step in 0..24_u64 {
        let config = lab.subject.sandbox_config("victim")?;
        let wait = Duration::from_millis(1 + step * 4);
        lab.subject.ask(async {
            let life = async {
                let id = run(lab.subject.client(), &config, "").await?;
                let sandbox = std::mem::ManuallyDrop::new(Sandbox {
                    subject: &lab.subject,
                    id,
                    config: config.clone(),
                });
                run_lifecycle(&lab, &sandbox).await
            };
            // The last call may have had its effect or not.
            let _ = tokio::time::timeout(wait, life).await;
        });
        lab.served().kill9()?;
        lab.subject.resume()?;
        lab.assert_consistent()?;
        if step % 2 == 0 {
            // Again, while it may still clean up.
            lab.served().kill9()?;
            lab.subject.resume()?;
        }
        lab.remove_all()?;
        lab.assert_clean()?;
    }
    lab.assert_works()
}

#[test]
fn a_second_runtime_on_the_same_directories_is_refused() -> Result<()> {
    let lab = Lab::start()?;
    let sandbox = lab.subject.sandbox("kept")?;
    let id = sandbox.waiting("main")?;
    let mut command = lab
        .subject
        .runtime
        .scratch()
        .command(rubelet_testbed::agent::binary()?);
    command
        .args(["runtime", "serve", "--listen"])
        .arg(format!(
            "unix://{}/second.sock",
            lab.subject.runtime.scratch().dir().display()
        ))
        .args(lab.served().environment().flags());
    let output = rubelet_testbed::command::output_of(&mut command)?;
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let root = lab.served().environment().root_dir();
    assert!(said.contains(&root.display().to_string()), "{said}");
    assert_eq!(lab.subject.truth.exec(&id, &["echo", "yes"])?, "yes\n");
    Ok(())
}
