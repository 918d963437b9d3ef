//! Stories: text files that say what a user wants and what goes wrong, and in which everything
//! that the node does about it, in order, with its reasons.
//!
//! The form of a file is described in [`story`], the words of its script in [`actions`]. With
//! `RUBELET_STORIES=write` in the environment, what happens is written into the files; read it
//! before you believe it.

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
                super::tell(concat!(stringify!($area), "/", stringify!($name))).await;
            })*
        })*

        /// All stories.
        const TOLD: &[&str] = &[$($(concat!(stringify!($area), "/", stringify!($name)),)*)*];
    };
}

stories! {
    agent:
        a_container_fails_while_none_runs
        adopts_what_runs
        dies_before_a_container_is_started
        dies_between_stopping_and_removing
        dies_in_a_back_off
        dies_while_the_pod_ends
        dies_while_the_runtime_makes_the_sandbox
        dies_while_the_runtime_starts_a_container
        starts_without_the_runtime
        stops_in_order_while_it_starts_a_container
    ;
    crash:
        a_container_that_fails_waits_longer_each_time
        always_restarts_what_ended_well
        back_off_is_forgotten_after_ten_minutes
        both_end_well
        killed_from_outside
        never_is_tried_once
        on_failure_until_it_succeeds
        out_of_memory
        out_of_memory_told_late
        the_pod_ends_when_its_last_container_has_ended
        the_runtime_fails_to_tell
    ;
    deadline:
        counts_the_pull
        is_exceeded
        is_exceeded_while_no_agent_runs
    ;
    edit:
        a_label
        adds_an_init_container
        an_image_of_one_of_two
        during_a_back_off
        of_a_pod_that_has_ended
        takes_a_container_away_and_adds_one
        while_a_container_is_being_stopped
    ;
    hook:
        a_failed_container_runs_no_pre_stop
        an_edit_runs_pre_stop_as_well
        post_start_fails
        post_start_fails_where_nothing_is_restarted
        post_start_hangs
        post_start_holds_the_container_back
        post_start_of_a_sidecar_holds_the_next_back
        post_start_over_http
        pre_stop_counts_into_the_grace
        pre_stop_fails
        pre_stop_of_a_sidecar_does_not_wait
        pre_stop_sleeps
        pre_stop_takes_longer_than_the_grace
        tcp_socket_is_no_hook
        the_agent_dies_in_post_start
        the_agent_dies_in_pre_stop
        the_container_ends_during_its_pre_stop
    ;
    image:
        a_name_that_is_none
        a_pull_takes_its_time
        a_pull_that_fails_and_then_works
        a_removal_ends_a_pull_that_hangs
        an_edit_ends_a_pull_that_hangs
        an_edit_to_an_image_that_is_nowhere
        pull_policy_never
    ;
    init:
        an_edit_of_an_init_container_that_is_through
        an_edit_of_the_container_that_waits
        an_edit_of_the_init_container_that_runs
        fails_with_always
        fails_with_never
        fails_with_on_failure
        init_containers_run_one_after_the_other
        out_of_memory
        the_agent_dies_while_it_runs
    ;
    operator:
        looks_into_a_pod
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
        an_init_container_of_its_own_policy
        restarts_of_all_containers_back_off
    ;
    probe:
        a_probe_that_cannot_be_tried
        liveness_after_an_initial_delay
        liveness_fails
        liveness_fails_again_and_again
        liveness_fails_now_and_then
        liveness_fails_where_nothing_is_restarted
        liveness_hangs
        liveness_of_a_sidecar
        liveness_over_http
        liveness_with_a_grace_of_its_own
        readiness_comes_and_goes
        readiness_holds_after_a_container_restart
        readiness_is_lost_while_no_agent_runs
        readiness_survives_the_agent
        startup_of_a_sidecar_gates_the_rest
        startup_succeeds_in_time
        startup_takes_too_long
        the_agent_ran_it_late
    ;
    remove:
        a_deaf_container_is_killed
        a_pod_that_has_ended
        a_successor_of_the_same_name
        an_orphan
        in_a_back_off
        the_grace_shrinks
        the_grace_shrinks_below_what_has_passed
        the_host_holds_on
        the_manifest_is_back_before_the_pod_is_gone
        the_runtime_holds_on
        while_it_starts
        while_the_runtime_makes_the_sandbox
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
        dies_after_one_of_two_has_done_its_work
        dies_during_init
        dies_under_a_job
        loses_its_address
        moves_to_the_network_of_the_host
        the_node_reboots
        the_node_reboots_under_a_job
        two_are_ready
        vanishes
        vanishes_during_init
        vanishes_under_a_job
    ;
    sidecar:
        a_deaf_main_container_takes_all_the_grace
        dies_while_an_init_container_runs
        dies_while_the_main_container_runs
        does_not_keep_a_finished_pod_going
        starts_first_and_ends_last
    ;
    start:
        a_container_that_cannot_be_created
        a_container_that_cannot_be_started_at_first
        a_pod_starts_and_is_removed
        a_sandbox_that_fails_although_it_was_made
        a_sandbox_that_fails_twice
        a_slow_runtime_is_waited_for
        a_volume_that_cannot_be_mounted
        an_answer_that_is_lost
        no_network_yet
        one_container_that_cannot_start_does_not_hold_up_the_other
    ;
}

/// Tells the story and compares.
async fn tell(name: &str) {
    let path = directory().join(format!("{name}.story"));
    let text = std::fs::read_to_string(&path).expect("each story that is listed has a file");
    let story = Story::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
    let happened = director::tell(&story).await;
    let happened = happened.unwrap_or_else(|error| panic!("{name}: {error}"));
    if std::env::var("RUBELET_STORIES").is_ok_and(|value| value == "write") {
        std::fs::write(&path, format!("{}{happened}", story.telling)).expect("it can be written");
    } else if happened != story.golden {
        panic!(
            "{name} goes on in another way than it is written:\n{}",
            diff::diff(&story.golden, &happened)
        );
    }
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests/stories")
}

#[test]
fn every_story_is_reported() {
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
    let told: BTreeSet<String> = TOLD.iter().map(|&name| name.to_owned()).collect();
    assert_eq!(told, found, "the list in this file, and the files");
}
