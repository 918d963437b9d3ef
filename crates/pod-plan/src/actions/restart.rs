//! Whether an ended container may start again.

use rubelet_api::pod::RestartPolicy;

/// The restart policy applied to an exit code (kubelet: `ShouldContainerBeRestarted`).
#[must_use]
pub fn should_restart(policy: RestartPolicy, exit_code: i32) -> bool {
    match policy {
        RestartPolicy::Always => true,
        RestartPolicy::OnFailure => exit_code != 0,
        RestartPolicy::Never => false,
    }
}
