//! The behavior of a container's processes, as stories write it.

use rubelet_sim::Behavior;

use super::words::duration;

/// The behaviors of successive starts, separated by semicolons; the last one repeats.
pub(super) fn script(text: &str) -> Result<Vec<Behavior>, String> {
    text.split("; then ").map(behavior).collect()
}

/// Such as `exits 1 after 5s`, `runs, ends 3s after SIGTERM with 0`, `runs out of memory after 2s`,
/// `can't be started: no such file`.
fn behavior(text: &str) -> Result<Behavior, String> {
    let text = text.trim();
    if let Some(message) = text.strip_prefix("can't be started: ") {
        return Ok(Behavior::does_not_start(message));
    }
    let (life, term) = text.split_once(", ").unwrap_or((text, ""));
    let no = || format!("unknown behavior of a container: {text}");
    let time = |text: &str| duration(text).ok_or_else(no);
    let code = |text: &str| text.parse::<i32>().map_err(|_| no());
    let words: Vec<&str> = life.split_whitespace().collect();
    let behavior = match words.as_slice() {
        ["runs"] => Behavior::runs(),
        ["exits", status, "after", after] => Behavior::exits(time(after)?, code(status)?),
        ["runs", "out", "of", "memory", "after", after] => {
            Behavior::runs_out_of_memory(time(after)?)
        }
        _ => return Err(no()),
    };
    let words: Vec<&str> = term.split_whitespace().collect();
    Ok(match words.as_slice() {
        [] => behavior,
        ["ignores", "SIGTERM"] => behavior.ignoring_term(),
        ["ends", after, "after", "SIGTERM"] => behavior.exiting_on_term(time(after)?, 143),
        ["ends", after, "after", "SIGTERM", "with", status] => {
            behavior.exiting_on_term(time(after)?, code(status)?)
        }
        _ => return Err(no()),
    })
}
