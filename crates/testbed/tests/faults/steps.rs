//! A fault at each step of a pod's life. A step is a system call that changes something outside of
//! the process that makes it: see `rubelet_testbed::steps`. Each kind of step on each kind of file is
//! met once; with `RUBELET_FAULT_STEPS=all` every single one.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use rubelet_testbed::steps::{Fault, FaultStep, Journal, Order, Tracer, Victim};

use crate::lab::Lab;
use crate::subject::{
    Sandbox, WAITING, exec, remove, remove_sandbox, run, start, stop, stop_sandbox,
};

/// How long a life may take that a tracer slows down.
const LIFE: Duration = Duration::from_secs(60);
/// The environment variable that asks for all steps.
const STEPS: &str = "RUBELET_FAULT_STEPS";

/// One life of a pod, call after call; an error ends it.
async fn live(lab: &Lab) -> Result<()> {
    let client = lab.subject.client();
    let config = lab.subject.sandbox_config("victim")?;
    let id = run(client, &config, "").await?;
    // It is removed below, or by who looks what is left.
    let sandbox = std::mem::ManuallyDrop::new(Sandbox {
        subject: &lab.subject,
        id,
        config,
    });
    let container = sandbox.creation(sandbox.script("main", WAITING)).await?;
    start(client, &container).await?;
    exec(client, &container, &["true"], 10).await?;
    stop(client, &container, 5).await?;
    remove(client, &container).await?;
    stop_sandbox(client, &sandbox.id).await?;
    remove_sandbox(client, &sandbox.id).await?;
    Ok(())
}

/// Lives once with a tracer beside it; what the tracer saw, and how the life ended.
fn traced(lab: &Lab, order: &Order) -> Result<(Journal, Result<()>)> {
    let pid = lab.served().pid().context("the runtime doesn't run")?;
    let journal = lab.subject.runtime.scratch().dir().join("steps");
    let program = Path::new(env!("CARGO_BIN_EXE_rubelet-steps"));
    let tracer = Tracer::start(program, pid, order, &journal)?;
    let life = lab.subject.ask(async {
        match tokio::time::timeout(LIFE, live(lab)).await {
            Ok(life) => life,
            Err(_) => Err(anyhow::anyhow!("it takes more than {LIFE:?}")),
        }
    });
    Ok((tracer.stop()?, life))
}

/// Which steps are met: the first of each kind, or all.
fn chosen(steps: &[String]) -> Vec<usize> {
    let all = std::env::var(STEPS).is_ok_and(|value| value == "all");
    let mut seen = BTreeSet::new();
    let numbered = steps.iter().enumerate();
    let new = numbered.filter(|(_, step)| all || seen.insert(step.as_str()));
    new.map(|(at, _)| at + 1).collect()
}

#[expect(
    clippy::print_stdout,
    reason = "which steps were met is what a reader of a failure wants to know"
)]
fn sweep(victim: Victim, fault: Fault) -> Result<()> {
    let lab = Lab::start()?;
    let order = |at| Order { victim, fault, at };
    let (whole, life) = traced(&lab, &order(FaultStep::None))?;
    life.context("the life that nothing disturbs")?;
    lab.assert_clean()?;
    let chosen = chosen(&whole.steps);
    println!(
        "{victim:?} {fault:?}: {} of {} steps",
        chosen.len(),
        whole.steps.len()
    );
    for at in chosen {
        let begun = rubelet_testbed::clock::now();
        let (journal, life) = traced(&lab, &order(FaultStep::Number(at)))?;
        let Some(step) = journal.fault else {
            // Threads may need a step less at another time.
            life.with_context(|| format!("{fault:?} at step {at} did not happen"))?;
            lab.assert_clean()?;
            continue;
        };
        // Half an init must not be taken for a whole one.
        anyhow::ensure!(
            victim != Victim::Grandchild || life.is_err(),
            "{fault:?} at step {at}, {step}: nobody noticed"
        );
        let outcome = match &life {
            Ok(()) => "it lived on".to_owned(),
            Err(error) => format!("{error:#}"),
        };
        let met = meet(&lab, victim)
            .with_context(|| format!("{fault:?} at step {at}, {step}: {outcome}"));
        println!("{at:4} {step}: {outcome} ({:?})", begun.elapsed());
        met?;
    }
    lab.assert_works()
}

/// After the fault: the state before or after what was asked for, from which all continues.
fn meet(lab: &Lab, victim: Victim) -> Result<()> {
    if victim == Victim::Process {
        // It is dying, or has been through a fault after which only a start finds everything.
        lab.served().kill9()?;
        lab.subject.resume()?;
    }
    lab.assert_consistent()?;
    lab.remove_all()?;
    lab.assert_clean()
}

#[test]
fn a_runtime_that_is_killed_before_any_step_leaves_nothing() -> Result<()> {
    sweep(Victim::Process, Fault::Kill)
}

#[test]
fn a_supervisor_that_is_killed_before_any_step_leaves_nothing() -> Result<()> {
    sweep(Victim::Child, Fault::Kill)
}

#[test]
fn an_init_that_is_killed_before_any_step_leaves_nothing() -> Result<()> {
    sweep(Victim::Grandchild, Fault::Kill)
}

#[test]
fn a_disk_that_is_full_at_any_step_of_the_runtime_leaves_nothing() -> Result<()> {
    sweep(Victim::Process, Fault::NoSpace)
}

#[test]
fn a_disk_that_is_full_at_any_step_of_a_supervisor_leaves_nothing() -> Result<()> {
    sweep(Victim::Child, Fault::NoSpace)
}

#[test]
fn what_a_killed_runtime_leaves_is_found_and_explained_by_doctor() -> Result<()> {
    let lab = Lab::start()?;
    let victim = Victim::Process;
    let doctor = || {
        let program = rubelet_testbed::agent::binary()?;
        let mut command = lab.subject.runtime.scratch().command(program);
        command.arg("doctor");
        command.args(lab.served().environment().flags());
        let output = rubelet_testbed::command::output_of(&mut command)?;
        Ok::<_, anyhow::Error>(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    // Its record is the last thing that is made of a sandbox.
    let record = Order {
        victim,
        fault: Fault::Kill,
        at: FaultStep::First {
            call: "rename".to_owned(),
            path: "/sandboxes/".to_owned(),
        },
    };
    let (journal, _) = traced(&lab, &record)?;
    anyhow::ensure!(journal.fault.is_some(), "no record is written: {journal:?}");
    let told = doctor()?;
    for leftover in [
        "belongs to no sandbox",
        "is mounted at",
        "addresses of the sandbox",
        "the runtime removes it at the start",
    ] {
        assert!(told.contains(leftover), "{leftover} is missing in\n{told}");
    }
    meet(&lab, victim)?;
    let told = doctor()?;
    assert!(!told.contains("the runtime removes it"), "{told}");
    lab.assert_works()
}
