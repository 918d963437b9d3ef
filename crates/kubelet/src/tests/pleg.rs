//! What the node learns of its containers, and when, whatever happens to the events that should
//! tell it.
//!
//! The scenarios by number, as their tests name them:
//!
//! | | what happens | test |
//! |---|---|---|
//! | 1 | events before the answer to a call | `starts::events_that_come_before_the_answer_make_nothing_a_second_time` |
//! | 2 | the status after a start | `starts::after_a_start_nothing_is_done_before_the_container_was_looked_at` |
//! | 3 | STOPPED before STARTED | `starts::a_start_that_is_reported_after_the_end_changes_nothing` |
//! | 4 | old news that comes last | `starts::whatever_comes_last_the_end_of_a_container_stays_its_end` |
//! | 5 | the end of an old sandbox | `ends::what_happens_to_an_old_sandbox_does_not_touch_the_new_one` |
//! | 6 | more ends than anybody works on | `floods::a_thousand_ends_while_no_pod_can_be_worked_on_are_all_worked_on_later` |
//! | 7 | one hung container, and twenty | `health::containers_whose_status_hangs_are_the_trouble_of_their_pods_only` |
//! | 8 | a runtime that hangs | `health::a_runtime_that_answers_nothing_for_three_minutes_makes_the_node_not_ready` |
//! | 9 | slow lists | `health::a_runtime_with_slow_lists_is_slow_and_not_gone` |
//! | 10 | a hundred restarts of the runtime | `absent::events_flow_again_after_a_short_restart_of_the_runtime_and_after_the_hundredth` |
//! | 11 | an exit while it is down | `absent::an_exit_while_the_runtime_is_down_is_reported_soon_after_it_is_back` |
//! | 12 | a stream that swallows an exit | `absent::what_is_lost_around_the_end_of_a_stream_is_found_by_the_lists_after_the_next` |
//! | 13 | a dead stream, with a start | `echoes::a_start_without_an_event_makes_a_new_stream_and_shows_what_was_missed` |
//! | 13 | a dead stream, without | `echoes::without_any_start_the_slow_list_shows_what_was_missed` |
//! | 14 | no headers | `echoes::a_stream_that_never_answers_delays_neither_the_start_nor_the_lists` |
//! | 15 | 10,000 replayed events | `floods::old_events_of_many_pods_cost_one_look_each_and_tell_nothing` |
//! | 16 | the reader never lags | `floods::events_are_read_at_once_although_nothing_can_be_inspected` |
//! | 17 | a lost answer | `starts::what_was_made_by_a_call_that_timed_out_is_found_and_not_made_twice` |
//! | 18 | a start that fails | `starts::a_start_that_failed_is_seen_as_its_end_at_once` |
//! | 19 | OOMKilled told late | `ends::a_reason_that_the_runtime_learns_late_is_shown_all_the_same` |
//! | 20 | the end of a pod | `ends::the_end_of_a_pod_waits_for_nothing_but_its_containers` |
//! | 21 | the clock steps | `clocks::a_step_of_the_wall_clock_changes_neither_what_is_seen_nor_when` |
//! | 22 | CRI-O's removals | `ends::a_removed_pod_is_forgotten_at_once_where_no_event_tells_that_its_sandbox_went` |
//! | 23 | removal after the exit code | `ends::no_container_is_removed_before_its_exit_code_was_told` |
//! | 24 | containerd 2.0.2 | `ends::a_sandbox_status_with_a_time_and_no_containers_hides_no_container` |
//! | 25 | UNKNOWN for a moment | `ends::a_runtime_that_is_unsure_for_a_moment_restarts_nothing` |
//!
//! What holds in all of them and in all random lives (`../random.rs`, 2000 in each run, others for
//! each commit):
//!
//! | | what | checked by |
//! |---|---|---|
//! | I1 | a task works only on what was looked at after its last step | `random/delivery.rs` in all seeds; `pleg/tests/inspection_state.rs` in many orders of threads |
//! | I2 | what is known becomes true after trouble, within `BACK_OFF` + `SOON`, or `LATER`, and `MOVES` | `random/seeds.rs::learn_the_truth` |
//! | I3 | one start, one end, one removal of each container | `random/truth.rs::assert_once` |
//! | I4 | each end is followed by a round that begins after it | `random/delivery.rs::assert_all_worked_on` |
//! | I5 | nothing is made that is alive | `random/truth.rs::follow`; `lost_answers.rs`, `killed_agent.rs`, `partial_lists.rs` |
//! | I6 | the exit code is the true one, and told before the removal | `random.rs::assert_codes`; scenario 23 |
//! | I7 | one inspection of a pod, `MAX_INSPECTIONS` in all | `random/truth.rs::read_began`; `urgent::however_many_pods_hang_what_is_asked_is_bounded_and_the_others_are_looked_at` |
//! | I8 | events are read within 10 ms | scenario 16 |
//! | I9 | not ready only when every call hung for 3 minutes | scenarios 7 to 9; `random.rs::look` |
//! | I10 | few calls at idle | `absent::a_node_on_which_nothing_happens_asks_next_to_nothing` |
//! | I11 | memory is bounded under floods | `floods::a_flood_of_events_costs_no_more_memory_than_a_few_of_them` |
//! | I12 | a step of the clock changes no decision | scenario 21; steps in the seeds |
//! | I13 | no task is left | `random/seeds.rs::end` |

mod absent;
mod clocks;
mod ends;
mod floods;
mod health;
mod kernel;
mod queries;
mod start_events;
mod starts;
mod urgent;
