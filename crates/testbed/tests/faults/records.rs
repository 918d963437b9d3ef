//! Truncated records, and a power loss.

use std::path::PathBuf;

use anyhow::Result;
use rubelet_cri::v1::{ContainerState, PodSandboxState};
use rubelet_testbed::{http, wait};

use crate::lab::Lab;
use crate::subject::{TIMEOUT, WAITING, remove, start};

/// The files of records.
fn records(lab: &Lab) -> Result<Vec<PathBuf>> {
    let root = lab.served().environment().root_dir();
    let mut found = Vec::new();
    for directory in ["sandboxes", "containers"] {
        for entry in std::fs::read_dir(root.join(directory))? {
            let path = entry?.path();
            if path
                .extension()
                .is_some_and(|extension| extension == "json")
            {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

#[test]
fn a_damaged_record_loses_at_most_one_pod() -> Result<()> {
    let lab = Lab::start()?;
    for (what, keep) in [("half", 2), ("nothing", 0), ("all but the end", 1)] {
        let sandbox = lab.subject.sandbox("damaged")?;
        sandbox.waiting("main")?;
        let mut files = records(&lab)?;
        let beside = lab.subject.sandbox("beside")?;
        let other = beside.waiting("main")?;
        assert_eq!(files.len(), 2);
        for victim in files.drain(..) {
            let whole = std::fs::read(&victim)?;
            lab.served().kill9()?;
            let length = match keep {
                0 => 0,
                1 => whole.len() - 1,
                _ => whole.len() / 2,
            };
            std::fs::write(&victim, &whole[..length])?;
            lab.subject.resume()?;
            lab.assert_consistent()?;
            assert_eq!(
                lab.subject.truth.exec(&other, &["echo", "yes"])?,
                "yes\n",
                "{what}"
            );
        }
        drop((sandbox, beside));
        lab.remove_all()?;
        lab.assert_works()?;
        // The damaged files are moved aside for inspection; nothing else is left.
        let root = lab.served().environment().root_dir();
        for directory in ["sandboxes", "containers"] {
            for entry in std::fs::read_dir(root.join(directory))? {
                let path = entry?.path();
                if path.is_dir() {
                    std::fs::remove_dir_all(path)?;
                } else {
                    std::fs::remove_file(path)?;
                }
            }
        }
        lab.assert_clean()?;
    }
    Ok(())
}

#[test]
fn after_a_reboot_pods_are_exited_and_resources_free() -> Result<()> {
    let lab = Lab::start()?;
    let sandbox = lab.subject.sandbox("rebooted")?;
    let running = sandbox.waiting("running")?;
    let created = sandbox.create(sandbox.script("created", WAITING))?;
    let ended = sandbox.start(sandbox.script("ended", "exit 3"))?;
    sandbox.ended(&ended)?;
    lab.served().lose_power()?;
    lab.subject.resume()?;
    assert_eq!(
        sandbox.own_status()?.state(),
        PodSandboxState::SandboxNotready
    );
    let status = sandbox.status(&running)?;
    assert_eq!(status.state(), ContainerState::ContainerExited);
    assert_eq!((status.exit_code, status.reason.as_str()), (255, "Unknown"));
    assert_eq!(sandbox.status(&ended)?.exit_code, 3);
    assert_ne!(
        sandbox.status(&created)?.state(),
        ContainerState::ContainerRunning
    );
    assert!(
        lab.subject
            .ask(start(lab.subject.client(), &created))
            .is_err()
    );
    lab.subject.ask(remove(lab.subject.client(), &running))?;

    let mut next = sandbox.config.clone();
    next.metadata.as_mut().unwrap().attempt = 1;
    let next = lab.subject.sandbox_of(next)?;
    next.start(next.script(
        "httpd",
        "echo hello > /tmp/index.html; exec httpd -f -h /tmp -p 8080",
    ))?;
    let address = format!("{}:8080", next.ip()?);
    wait::until("the new pod is reached", TIMEOUT, || {
        Ok(http::get_tcp(&address, "/").ok().map(drop))
    })?;
    drop((sandbox, next));
    lab.remove_all()?;
    lab.assert_clean()
}
