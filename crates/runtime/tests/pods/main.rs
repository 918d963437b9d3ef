//! Pods on the embedded runtime, through the CRI's traits: this program is the agent, and executed
//! again it is the shim of each pod. As root. Without arguments all tests run, one after the other;
//! an argument picks those whose name has it.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program of tests; without the harness, clippy can't know"
)]

mod attach_sessions;
mod exec_sessions;
mod fixture;
mod lifecycle;
mod oom;
mod port_forward;
mod restart;
mod session_urls;
mod speed;

use std::{
    env,
    panic::{AssertUnwindSafe, catch_unwind},
    process::ExitCode,
};

use fixture::Fixture;

type Test = (&'static str, fn() -> bool);

macro_rules! tests {
    ($list:ident: $($module:ident::$name:ident),* $(,)?) => {
        const $list: &[Test] = &[$((
            concat!(stringify!($module), "::", stringify!($name)),
            || run(async |fixture| $module::$name(fixture).await),
        )),*];
    };
}

tests! { TESTS:
    lifecycle::a_pod_starts_writes_its_log_and_is_removed,
    lifecycle::a_pod_has_an_address_on_the_bridge,
    lifecycle::a_container_is_asked_to_end_and_killed_after_its_grace,
    lifecycle::a_command_runs_in_a_container,
    lifecycle::each_step_is_an_event,
    lifecycle::a_program_that_is_missing_is_a_start_error,
    exec_sessions::streams_and_terminals_work_in_each_kind_of_container,
    exec_sessions::a_slow_reader_loses_nothing_of_a_long_output,
    exec_sessions::a_child_in_the_background_does_not_hold_up_the_session,
    exec_sessions::a_command_that_cannot_run_says_why,
    exec_sessions::a_client_that_goes_away_kills_nothing_and_leaves_nothing,
    exec_sessions::a_session_ends_with_its_container,
    attach_sessions::a_client_that_never_reads_is_told_and_holds_up_nobody,
    attach_sessions::the_input_of_a_container_ends_with_its_first_client,
    attach_sessions::a_terminal_is_resized_and_shared,
    attach_sessions::what_a_container_does_not_have_is_refused,
    attach_sessions::clients_that_go_away_leave_nothing,
    port_forward::a_port_of_a_pod_answers_by_ipv4_and_ipv6,
    port_forward::a_pod_on_the_hosts_network_has_the_hosts_ports,
    session_urls::a_client_of_the_cri_has_sessions_by_urls_that_work_once,
    oom::an_oom_kill_is_told_when_systemd_has_removed_the_cgroup_already,
    restart::the_next_runtime_adopts_what_runs,
    restart::another_runtime_on_the_machine_leaves_the_pods_alone,
    restart::a_pod_whose_supervisor_is_killed_is_not_ready,
    restart::what_died_while_nobody_looked_is_taken_down,
}

tests! { MEASUREMENTS:
    speed::of_single_pods,
    speed::of_a_hundred_pods,
}

fn main() -> ExitCode {
    let args: Vec<_> = env::args_os().collect();
    if args.get(1).is_some_and(|first| first == "shim") {
        return rubelet_shim::main(&args[2..]);
    }
    let wanted: Vec<String> = env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let has = |option: &str| env::args().any(|arg| arg == option);
    if has("--list") {
        // None of them is ignored.
        for (name, _) in TESTS.iter().filter(|_| !has("--ignored")) {
            println!("{name}: test");
        }
        return ExitCode::SUCCESS;
    }
    let exact = has("--exact");
    let asked = |name: &str| {
        let mut wanted = wanted.iter();
        wanted.any(|wanted| {
            if exact {
                name == wanted
            } else {
                name.contains(wanted)
            }
        })
    };
    let tests = TESTS
        .iter()
        .filter(|(name, _)| wanted.is_empty() || asked(name));
    let chosen = tests.chain(MEASUREMENTS.iter().filter(|(name, _)| asked(name)));
    let mut failed = Vec::new();
    for (name, test) in chosen {
        println!("test {name} ...");
        let passed = catch_unwind(AssertUnwindSafe(test)).unwrap_or(false);
        println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
        if !passed {
            failed.push(name);
        }
    }
    if failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        println!("failed: {failed:?}");
        ExitCode::FAILURE
    }
}

/// Runs one test with a runtime of its own, and cleans up whatever happens.
fn run(test: impl AsyncFnOnce(&Fixture)) -> bool {
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a tokio runtime");
    let fixture = Fixture::new();
    let passed = catch_unwind(AssertUnwindSafe(|| tokio.block_on(test(&fixture)))).is_ok();
    drop(tokio);
    let left = fixture.clean();
    if !left.is_empty() {
        println!("left behind: {left:#?}");
    }
    passed && left.is_empty()
}
