//! A fault at each step of a pod's lifecycle. A step is a system call with effects outside of its
//! process: see `rubelet_testbed::steps`. Each kind of step on each kind of file gets one fault; with
//! `RUBELET_FAULT_STEPS=all` every step does.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use rubelet_testbed::steps::{Fault, FaultStep, Journal, Order, Tracer, Victim};

use crate::lab::Lab;
use crate::subject::{
    Sandbox, WAITING, exec, remove, remove_sandbox, run, start, stop, stop_sandbox,
};

/// Timeout of a lifecycle that a tracer slows down.
const LIFE: Duration = Duration::from_secs(60);
/// The environment variable that selects all steps.
const STEPS: &str = "RUBELET_FAULT_STEPS";

/// One lifecycle of a pod, call by call; an error ends it.
async fn run_lifecycle(lab: &Lab) -> Result<()> {
    let client = lab.subject.client();
    let config = lab.subject.sandbox_config("victim")?;
    let id = run(client, &config, "").await?;
    // It is removed below, or by the check for leftovers.
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

/// Runs one lifecycle with a tracer; returns its journal and the result.
fn traced(lab: &Lab, order: &Order) -> Result<(Journal, Result<()>)> {
    let pid = lab.served().pid().context("the runtime doesn't run")?;
    let journal = lab.subject.runtime.scratch().dir().join("steps");
    let program = Path::new(env!("CARGO_BIN_EXE_rubelet-steps"));
    let tracer = Tracer::start(program, pid, order, &journal)?;
    let life = lab.subject.ask(async {
        match tokio::time::timeout(LIFE, run_lifecycle(lab)).await {
            Ok(life) => life,
            Err(_) => Err(anyhow::anyhow!("it takes more than {LIFE:?}")),
        }
    });
    Ok((tracer.stop()?, life))
}

/// The steps to test: the first of each kind, or all.
fn chosen(steps: &[String]) -> Vec<usize> {
    let all = std::env::var(STEPS).is_ok_and(|value| value == "all");
    let mut seen = BTreeSet::new();
    let numbered = steps.iter().enumerate();
    let new = numbered.filter(|(_, step)| all || seen.insert(step.as_str()));
    new.map(|(at, _)| at + 1).collect()
}

#[expect(
    clippy::print_stdout,
    reason = "the tested steps help to analyse a failure"
)]
fn sweep(victim: Victim, fault: Fault) -> Result<()> {
    let lab = Lab::start()?;
    let order = |at| Order { victim, fault, at };
    let (whole, life) = traced(&lab, &order(FaultStep::None))?;
    life.context("the lifecycle without a fault")?;
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
            // The number of steps of threads may vary.
            life.with_context(|| format!("{fault:?} at step {at} did not happen"))?;
            lab.assert_clean()?;
            continue;
        };
        // A half-written init must not be taken for a complete one.
        anyhow::ensure!(
            victim != Victim::Grandchild || life.is_err(),
            "{fault:?} at step {at}, {step}: nobody noticed"
        );
        let outcome = match &life {
            Ok(()) => "it lived on".to_owned(),
            Err(error) => format!("{error:#}"),
        };
        let met = check_recovery(&lab, victim)
            .with_context(|| format!("{fault:?} at step {at}, {step}: {outcome}"));
        println!("{at:4} {step}: {outcome} ({:?})", begun.elapsed());
        met?;
    }
    lab.assert_works()
}

/// Checks, after the fault, that the state is the one before or after the call, and that the
/// runtime works.
fn check_recovery(lab: &Lab, victim: Victim) -> Result<()> {
    if victim == Victim::Process {
        // It is exiting, or had a fault after which only a start finds all leftovers.
        lab.served().kill9()?;
        lab.subject.resume()?;
    }
    lab.assert_consistent()?;
    lab.remove_all()?;
    lab.assert_clean()
}

#[test]
fn a_runtime_killed_before_any_step_leaves_nothing() -> Result<()> {
    sweep(Victim::Process, Fault::Kill)
}

#[test]
fn a_shim_killed_before_any_step_leaves_nothing() -> Result<()> {
    sweep(Victim::Child, Fault::Kill)
}

#[test]
fn an_init_killed_before_any_step_leaves_nothing() -> Result<()> {
    sweep(Victim::Grandchild, Fault::Kill)
}

#[test]
fn a_full_disk_at_any_step_of_the_runtime_leaves_nothing() -> Result<()> {
    sweep(Victim::Process, Fault::NoSpace)
}

#[test]
fn a_full_disk_at_any_step_of_a_shim_leaves_nothing() -> Result<()> {
    sweep(Victim::Child, Fault::NoSpace)
}

#[test]
fn doctor_explains_leftovers_of_a_killed_runtime() -> Result<()> {
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
    // The record is the last part of a sandbox that is created.
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
    check_recovery(&lab, victim)?;
    let told = doctor()?;
    assert!(!told.contains("the runtime removes it"), "{told}");
    lab.assert_works()
}
