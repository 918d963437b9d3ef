//! A disk without space.

use anyhow::Result;
use rubelet_testbed::disk::SmallDisk;
use rubelet_testbed::{Embedded, Served, agent, images};

use crate::lab::Lab;
use crate::subject::WAITING;

fn environment() -> Result<Embedded> {
    Embedded::without_images(&agent::binary()?)
}

fn load_images(embedded: &Embedded) -> Result<()> {
    let archive = embedded.scratch().dir().join("images.tar");
    images::write_archive(&archive)?;
    embedded.image(&["load", &archive.display().to_string()])?;
    Ok(std::fs::remove_file(&archive)?)
}

#[test]
fn a_full_disk_fails_only_the_call_that_needs_space() -> Result<()> {
    let program = agent::binary()?;
    for which in ["root", "run"] {
        let embedded = environment()?;
        let dir = match which {
            "root" => embedded.root_dir(),
            _ => embedded.run_dir(),
        };
        // Unpacking of images requires some free space on the disk.
        let small = SmallDisk::mount(&dir, 400 * 1024)?;
        load_images(&embedded)?;
        let lab = Lab::on(Served::start_in(embedded, &program)?)?;
        let before = lab.subject.sandbox("before")?;
        let kept = before.waiting("kept")?;
        let mut failed = 0;
        for free in [0, 4, 8, 16, 32, 64] {
            small.fill(free * 1024)?;
            match lab.subject.sandbox("full") {
                Ok(sandbox) => match sandbox.waiting("main") {
                    Ok(id) => assert_eq!(lab.subject.truth.exec(&id, &["echo", "yes"])?, "yes\n"),
                    Err(error) => {
                        failed += 1;
                        assert!(!error.message.is_empty());
                    }
                },
                Err(error) => {
                    failed += 1;
                    let said = format!("{error:#}");
                    assert!(
                        said.contains("No space left"),
                        "{which}, {free} KiB: {said}"
                    );
                }
            }
            assert_eq!(lab.subject.truth.exec(&kept, &["echo", "yes"])?, "yes\n");
            if free == 0 {
                // It starts on a full disk too, with its previous state.
                lab.served().kill9()?;
                lab.subject.resume()?;
                assert_eq!(lab.subject.truth.exec(&kept, &["echo", "yes"])?, "yes\n");
            }
            small.empty()?;
        }
        assert!(failed > 0, "{which}: it was never full");
        let more = before.create(before.script("more", WAITING))?;
        lab.subject
            .ask(crate::subject::start(lab.subject.client(), &more))?;
        drop(before);
        lab.remove_all()?;
        lab.assert_works()?;
        lab.assert_clean()?;
        drop(lab);
        drop(small);
    }
    Ok(())
}

#[test]
fn an_exit_on_a_full_disk_is_recorded() -> Result<()> {
    let embedded = environment()?;
    load_images(&embedded)?;
    let run = embedded.run_dir();
    let small = SmallDisk::mount(&run, 16 * 1024)?;
    let lab = Lab::on(Served::start_in(embedded, &agent::binary()?)?)?;
    let sandbox = lab.subject.sandbox("ending")?;
    let id = sandbox.start(sandbox.script(
        "main",
        "trap 'exit 6' TERM; echo ready; while :; do sleep 0.05; done",
    ))?;
    sandbox.wait_log("main", "ready")?;
    small.fill(0)?;
    lab.subject
        .ask(crate::subject::stop(lab.subject.client(), &id, 20))?;
    assert_eq!(sandbox.status(&id)?.exit_code, 6);
    small.empty()?;
    drop(sandbox);
    lab.assert_clean()
}

#[test]
fn a_pull_that_fills_the_disk_leaves_nothing() -> Result<()> {
    let embedded = environment()?;
    let root = embedded.root_dir();
    let small = SmallDisk::mount(&root, 3 * 1024)?;
    assert!(load_images(&embedded).is_err());
    let left = std::process::Command::new("du")
        .args(["-sk"])
        .arg(&root)
        .output()?;
    let left = String::from_utf8_lossy(&left.stdout).into_owned();
    let kib: u64 = left.split_whitespace().next().unwrap_or_default().parse()?;
    assert!(kib < 200, "{left}");
    drop(small);
    Ok(())
}
