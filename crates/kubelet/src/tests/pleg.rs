//! What the node learns about its containers, and when, whatever happens to the events.
//!
//! The scenarios by number, as their tests name them:
//!
//! | | what happens | test |
//! |---|---|---|
//! | 1 | events before the response to a call | `starts::events_before_a_calls_response_create_nothing_twice` |
//! | 2 | the status after a start | `starts::after_a_start_an_inspection_precedes_the_next_step` |
//! | 3 | STOPPED before STARTED | `starts::a_start_that_is_reported_after_the_exit_changes_nothing` |
//! | 4 | old events that arrive last | `starts::late_events_do_not_revive_an_exited_container` |
//! | 5 | exits in an old sandbox | `ends::events_of_an_old_sandbox_do_not_affect_the_new_one` |
//! | 6 | more exits than tasks can handle | `floods::a_thousand_exits_while_not_ready_are_all_handled_later` |
//! | 7 | one hung container, and twenty | `health::containers_whose_status_hangs_affect_only_their_pods` |
//! | 8 | a runtime that hangs | `health::a_runtime_silent_for_three_minutes_makes_the_node_not_ready` |
//! | 9 | slow lists | `health::slow_lists_do_not_make_the_node_not_ready` |
//! | 10 | a hundred restarts of the runtime | `absent::events_resume_after_each_of_a_hundred_runtime_restarts` |
//! | 11 | an exit while it is down | `absent::an_exit_while_the_runtime_is_down_is_reported_soon_after` |
//! | 12 | a stream that swallows an exit | `absent::changes_lost_between_streams_are_found_by_relists` |
//! | 13 | a dead stream, with a start | `start_events::a_start_without_an_event_reconnects_and_finds_missed_exits` |
//! | 13 | a dead stream, without | `start_events::without_any_start_the_slow_relist_finds_missed_exits` |
//! | 14 | no headers | `start_events::a_stream_without_a_response_delays_neither_start_nor_relist` |
//! | 15 | 10,000 replayed events | `floods::replayed_events_cost_one_inspection_per_pod_and_no_report` |
//! | 16 | the reader never lags | `floods::events_are_read_at_once_while_inspections_hang` |
//! | 17 | a lost response | `starts::what_a_timed_out_call_created_is_found_and_not_created_twice` |
//! | 18 | a start that fails | `starts::a_failed_start_is_reported_as_an_exit_at_once` |
//! | 19 | OOMKilled reported late | `ends::a_late_exit_reason_is_still_published` |
//! | 20 | termination of a pod | `ends::pod_termination_waits_only_for_its_containers` |
//! | 21 | the clock steps | `clocks::a_wall_clock_step_changes_no_report_and_no_delay` |
//! | 22 | CRI-O's removals | `ends::a_removed_pod_is_forgotten_at_once_without_a_sandbox_event` |
//! | 23 | removal after the exit code | `ends::no_container_is_removed_before_its_exit_code_is_reported` |
//! | 24 | containerd 2.0.2 | `ends::a_sandbox_status_without_containers_hides_no_container` |
//! | 25 | UNKNOWN for a moment | `ends::a_brief_unknown_state_restarts_nothing` |
//!
//! Invariants, in all scenarios and all random lives (`../random.rs`, 2000 in each run, others for
//! each commit):
//!
//! | | what | checked by |
//! |---|---|---|
//! | I1 | a task acts only on an inspection that began after its last step | `random/delivery.rs` in all seeds; `pleg/src/queue/interleavings.rs` in many orders of threads |
//! | I2 | observations become true after faults end, within `LAST_RETRY` + `CONVERGENCE`, or `CONVERGENCE_AFTER_LOSS`, and `STILL_CHANGING` | `random/seeds.rs::assert_status_converges` |
//! | I3 | one start, one exit, one removal is reported of each container | `random/truth.rs::assert_once` |
//! | I4 | each exit is followed by a sync round that begins after it | `random/delivery.rs::assert_all_worked_on` |
//! | I5 | nothing that runs is created again | `random/truth.rs::follow`; `lost_answers.rs`, `killed_agent.rs`, `partial_lists.rs` |
//! | I6 | the exit code is the true one, and reported before the removal | `random/checks.rs::assert_codes`; scenario 23 |
//! | I7 | one inspection of a pod, `MAX_INSPECTIONS` in all | `random/truth.rs::read_began`; `urgent::hung_inspections_are_bounded_and_others_go_ahead` |
//! | I8 | events are read within 10 ms | scenario 16 |
//! | I9 | not ready only when every call hung for 3 minutes | scenarios 7 to 9; `random.rs::check_invariants` |
//! | I10 | few calls when idle | `absent::an_idle_node_makes_few_calls` |
//! | I11 | memory is bounded under floods | `floods::a_flood_of_events_does_not_grow_memory` |
//! | I12 | a step of the clock changes no decision | scenario 21; steps in the seeds |
//! | I13 | no task is leaked | `random/seeds.rs::end` |

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
