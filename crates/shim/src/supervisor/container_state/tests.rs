//! The states that a container goes through, without processes.

use std::{
    fs::File,
    os::fd::{BorrowedFd, OwnedFd},
};

use super::*;
use crate::{protocol::CallFailure, runtime::StartupStep};

/// A startup with a program of an external runtime, or without one.
#[derive(Debug)]
struct FakeStartup(Option<i32>);

impl Startup for FakeStartup {
    fn watch(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn helper(&self) -> Option<i32> {
        self.0
    }

    fn helper_ended(&mut self, _: ProcessExit) {
        self.0 = None;
    }

    fn advance(&mut self) -> Option<StartupStep> {
        None
    }

    fn go(&mut self) -> Result<(), CallFailure> {
        Ok(())
    }
}

const PID: i32 = 1234;
const CALLER: ReplyTo = ReplyTo {
    connection: 1,
    id: 2,
};

fn creating(helper: Option<i32>) -> ContainerState {
    ContainerState::creating(Box::new(FakeStartup(helper)), CALLER)
}

fn alive() -> Init {
    let handle: OwnedFd = File::open("/dev/null").unwrap().into();
    Init::Alive { pid: PID, handle }
}

/// Created at 10, with the request answered.
fn created() -> ContainerState {
    let mut state = creating(None);
    state.on_init(alive());
    assert_eq!(state.on_created(10), Some((PID, Some(CALLER))));
    state
}

#[test]
fn a_container_is_created_started_and_exits() {
    let mut state = creating(None);
    assert_eq!((state.phase(), state.pid()), (ContainerPhase::Creating, 0));
    assert!(!state.was_created());

    state = created();
    assert_eq!((state.phase(), state.pid()), (ContainerPhase::Created, PID));
    assert_eq!((state.times_ns(), state.take_caller()), ((10, 0), None));

    assert!(state.take_startup().is_some());
    assert_eq!(state.on_started(20), None);
    assert_eq!((state.phase(), state.pid()), (ContainerPhase::Running, PID));
    assert_eq!(state.times_ns(), (10, 20));
    assert!(state.alive_init().is_some());

    let exit = state.on_exit(ProcessExit::Exit(3), 30, true).unwrap();
    assert_eq!(
        (exit.exit_code, exit.started_at_ns, exit.at_ns),
        (3, 20, 30)
    );
    assert!(exit.oom_killed);
    assert_eq!((state.phase(), state.pid()), (ContainerPhase::Exited, PID));
    assert_eq!((state.times_ns(), state.exit()), ((10, 20), Some(&exit)));
    assert!(state.was_created() && state.init().is_none());
}

#[test]
fn the_request_for_a_start_is_answered_once() {
    let mut state = created();
    if let ContainerState::Created { caller, .. } = &mut state {
        *caller = Some(CALLER);
    }
    assert_eq!(state.on_started(20), Some(CALLER));
    assert_eq!(state.on_started(21), None);
    assert_eq!(state.times_ns(), (10, 20));
}

#[test]
fn a_container_that_exits_before_its_start_has_no_start_time() {
    let mut state = created();
    let exit = state.on_exit(ProcessExit::Exit(1), 30, false).unwrap();
    assert_eq!((exit.started_at_ns, state.times_ns()), (0, (10, 0)));
}

#[test]
fn no_exit_of_a_container_that_was_not_created_is_reported() {
    let mut state = creating(None);
    state.on_init(alive());
    assert_eq!(state.take_caller(), Some(CALLER));
    assert_eq!(state.on_exit(ProcessExit::Exit(1), 30, false), None);
    assert_eq!((state.phase(), state.pid()), (ContainerPhase::Exited, PID));
    assert!(!state.was_created() && state.exit().is_none());
    assert_eq!(state.times_ns(), (0, 0));
}

#[test]
fn an_early_exit_is_kept_until_the_runtime_reports_the_container() {
    let mut state = creating(Some(77));
    state.on_init(alive());
    assert_eq!(state.helper(), Some(77));
    state.on_early_exit(ProcessExit::Exit(4));
    assert!(state.alive_init().is_none());
    assert_eq!(state.on_created(10), Some((PID, Some(CALLER))));
    assert_eq!(state.early_exit(), Some(ProcessExit::Exit(4)));
    assert_eq!(state.pid(), PID);
}

#[test]
fn a_container_without_an_init_is_not_created_and_one_that_is_not_created_not_started() {
    let mut state = creating(None);
    assert_eq!(state.on_created(10), None);
    assert_eq!(state.on_started(20), None);
    assert_eq!(state.phase(), ContainerPhase::Creating);
    assert_eq!(state.take_caller(), Some(CALLER));
}
