//! Stories: text files with pods, a script of what users do and what fails, and everything that the
//! agent does in response, in order, with its reasons.
//!
//! [`story`] describes the format of a file, [`actions`] the commands of its script. With
//! `RUBELET_STORIES=write` in the environment, the result is written into the files; review it
//! before you commit it.

mod actions;
mod behavior;
mod calls;
mod diff;
mod director;
mod log;
mod status;
mod story;
mod timeline;
mod words;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use story::Story;

macro_rules! stories {
    ($($area:ident: $($name:ident)*;)*) => {
        $(mod $area {
            $(#[tokio::test(start_paused = true)]
            async fn $name() {
                super::check(concat!(stringify!($area), "/", stringify!($name))).await;
            })*
        })*

        /// All stories.
        const STORIES: &[&str] = &[$($(concat!(stringify!($area), "/", stringify!($name)),)*)*];
    };
}

stories! {
    agent:
        a_container_fails_while_no_agent_runs
        adopts_running_containers
        dies_before_a_container_is_started
        dies_between_stopping_and_removing
        dies_in_a_back_off
        dies_while_the_pod_terminates
        dies_while_the_runtime_creates_the_sandbox
        dies_while_the_runtime_starts_a_container
        starts_without_the_runtime
        stops_gracefully_while_it_starts_a_container
    ;
    crash:
        a_container_that_fails_waits_longer_each_time
        all_containers_succeed
        always_restarts_a_container_that_succeeded
        back_off_is_reset_after_ten_minutes
        killed_from_outside
        never_is_tried_once
        on_failure_until_it_succeeds
        out_of_memory
        out_of_memory_reported_late
        the_pod_ends_when_its_last_container_has_ended
        the_runtime_cannot_report_a_status
    ;
    deadline:
        counts_the_pull
        is_exceeded
        is_exceeded_while_no_agent_runs
    ;
    edit:
        a_label
        adds_an_init_container
        an_image_of_one_container
        during_a_back_off
        of_a_pod_that_has_ended
        removes_a_container_and_adds_one
        while_a_container_is_being_stopped
    ;
    hook:
        a_failed_container_runs_no_pre_stop
        an_edit_runs_pre_stop_as_well
        post_start_delays_the_container
        post_start_fails
        post_start_fails_where_nothing_is_restarted
        post_start_hangs
        post_start_of_a_sidecar_delays_the_next
        post_start_over_http
        pre_stop_counts_toward_the_grace
        pre_stop_fails
        pre_stop_of_a_sidecar_does_not_wait
        pre_stop_sleeps
        pre_stop_takes_longer_than_the_grace
        tcp_socket_hook_fails
        the_agent_dies_in_post_start
        the_agent_dies_in_pre_stop
        the_container_ends_during_its_pre_stop
    ;
    image:
        a_pull_that_fails_and_then_works
        a_removal_ends_a_pull_that_hangs
        a_slow_pull
        an_edit_ends_a_pull_that_hangs
        an_edit_to_an_image_that_does_not_exist
        an_invalid_name
        pull_policy_never
    ;
    init:
        an_edit_of_a_completed_init_container
        an_edit_of_the_running_init_container
        an_edit_of_the_waiting_container
        fails_with_always
        fails_with_never
        fails_with_on_failure
        init_containers_run_one_after_the_other
        out_of_memory
        the_agent_dies_while_it_runs
    ;
    operator:
        adds_a_debug_container
        opens_a_readiness_gate
        restarts_a_container
        restarts_a_container_in_its_back_off
        restarts_a_container_while_no_pull_works
        the_agent_dies_before_it_has_restarted
    ;
    policy:
        a_container_that_is_not_restarted
        a_rule_restarts_all_containers
        a_rule_restarts_one_exit_code
        an_init_container_with_its_own_policy
        restarts_of_all_containers_back_off
    ;
    probe:
        a_probe_that_cannot_run
        a_probe_that_the_agent_ran_late
        liveness_after_an_initial_delay
        liveness_fails
        liveness_fails_again_and_again
        liveness_fails_now_and_then
        liveness_fails_where_nothing_is_restarted
        liveness_hangs
        liveness_of_a_sidecar
        liveness_over_http
        liveness_with_its_own_grace_period
        readiness_comes_and_goes
        readiness_holds_after_a_container_restart
        readiness_is_lost_while_no_agent_runs
        readiness_survives_the_agent
        startup_of_a_sidecar_gates_the_rest
        startup_succeeds_in_time
        startup_takes_too_long
    ;
    remove:
        a_container_that_ignores_sigterm
        a_pod_that_has_ended
        a_successor_of_the_same_name
        an_orphan
        clean_up_fails_at_first
        in_a_back_off
        stopping_fails_at_first
        the_grace_shrinks
        the_grace_shrinks_below_what_has_passed
        the_manifest_is_back_before_the_pod_is_gone
        while_it_starts
        while_the_runtime_creates_the_sandbox
    ;
    runtime:
        a_container_fails_while_it_is_down
        hangs_in_a_stop
        hangs_in_one_start
        loses_track_of_a_container
        loses_track_of_a_job
        restarts
    ;
    sandbox:
        dies
        dies_after_one_of_two_has_completed
        dies_during_init
        dies_under_a_job
        is_removed_externally
        is_removed_externally_during_init
        is_removed_externally_under_a_job
        loses_its_address
        moves_to_the_network_of_the_host
        the_node_reboots
        the_node_reboots_under_a_job
        two_are_ready
    ;
    sidecar:
        a_main_container_uses_up_the_grace
        dies_while_an_init_container_runs
        dies_while_the_main_container_runs
        does_not_keep_a_finished_pod_going
        starts_first_and_ends_last
    ;
    start:
        a_container_that_cannot_be_created
        a_container_that_cannot_be_started_at_first
        a_container_that_cannot_start_does_not_hold_up_the_other
        a_pod_starts_and_is_removed
        a_sandbox_that_fails_twice
        a_sandbox_whose_response_is_lost
        a_slow_runtime_is_waited_for
        a_start_whose_response_is_lost
        a_volume_that_cannot_be_mounted
        no_network_yet
    ;
}

/// Runs the story and compares the result with its file.
async fn check(name: &str) {
    let path = directory().join(format!("{name}.story"));
    let text = std::fs::read_to_string(&path).expect("each story that is listed has a file");
    let story = Story::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
    let happened = director::run(&story).await;
    let happened = happened.unwrap_or_else(|error| panic!("{name}: {error}"));
    if std::env::var("RUBELET_STORIES").is_ok_and(|value| value == "write") {
        std::fs::write(&path, format!("{}{happened}", story.header)).expect("it can be written");
    } else if happened != story.golden {
        panic!(
            "{name} differs from its file:\n{}",
            diff::diff(&story.golden, &happened)
        );
    }
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests/stories")
}

#[test]
fn every_story_file_is_listed() {
    let mut found = BTreeSet::new();
    for area in std::fs::read_dir(directory()).unwrap() {
        let area = area.unwrap().path();
        let Ok(files) = std::fs::read_dir(&area) else {
            continue;
        };
        for file in files {
            let file = file.unwrap().path();
            if file
                .extension()
                .is_some_and(|extension| extension == "story")
            {
                let name = file.strip_prefix(directory()).unwrap().with_extension("");
                found.insert(name.to_str().unwrap().to_owned());
            }
        }
    }
    let reported: BTreeSet<String> = STORIES.iter().map(|&name| name.to_owned()).collect();
    assert_eq!(
        reported, found,
        "the list in this file does not match the files"
    );
}
