//! systemd scopes: with the systemd cgroup driver, systemd creates the cgroups of containers and
//! shims and gets the limits of containers.

use std::{
    path::Path,
    process::{Child, Command, Stdio},
};

use rubelet_cgroup_plan::{CgroupLayout, SystemdScope};
use rubelet_host::{
    open_files::limit_as_before,
    systemd::{Scope, Systemd},
};
use rubelet_oci::LinuxResources;

use crate::{
    blocking::unbounded,
    error::{Result, RuntimeError},
};

/// A placeholder process in a scope until the container's init joins: systemd refuses a scope
/// without a process, and removes one whose last process exits.
#[derive(Debug)]
pub(super) struct ScopePlaceholder(Child);

impl Drop for ScopePlaceholder {
    fn drop(&mut self) {
        // It exits at the end of its input, unless it was killed with its cgroup.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Starts the scope of a container, with its limits.
pub(super) async fn start(
    scope: SystemdScope,
    executable: &Path,
    layout: CgroupLayout,
    limits: LinuxResources,
) -> Result<ScopePlaceholder> {
    let mut command = Command::new(executable);
    // systemd may be slow; other operations must not wait for it.
    unbounded(move || {
        let systemd = systemd()?;
        let holder = limit_as_before(&mut command)
            .args(["shim", "--hold"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| {
                RuntimeError::because(
                    "cannot start the placeholder process of a systemd scope",
                    &error,
                )
            })?;
        let holder = ScopePlaceholder(holder);
        let scope = Scope {
            unit: &scope.name,
            slice: &scope.slice,
            description: "Rubelet container",
            pids: &[holder.0.id()],
            limits: Some(&limits),
            layout,
        };
        systemd.start_scope(&scope).map_err(|error| {
            RuntimeError::because("cannot create the container's cgroup", &error)
        })?;
        Ok(holder)
    })
    .await
}

/// Starts the scope of a running shim. Blocks.
pub(crate) fn start_for(
    scope: &SystemdScope,
    pid: i32,
    layout: CgroupLayout,
) -> Result<(), RuntimeError> {
    let started = systemd()?.start_scope(&Scope {
        unit: &scope.name,
        slice: &scope.slice,
        description: "Rubelet shim",
        pids: &[pid.cast_unsigned()],
        limits: None,
        layout,
    });
    started.map_err(|error| {
        RuntimeError::because("cannot create the cgroup of the pod's shim", &error)
    })
}

/// Sets new limits through systemd, which would otherwise undo them at `systemctl daemon-reload`.
pub(super) async fn set_limits(
    unit: String,
    layout: CgroupLayout,
    limits: LinuxResources,
) -> Result<()> {
    unbounded(move || {
        systemd()?
            .set_limits(&unit, layout, &limits)
            .map_err(|error| RuntimeError::because("cannot update the resource limits", &error))
    })
    .await
}

/// Stops the scope of a container or shim that exited.
pub(crate) async fn stop(unit: String) -> Result<()> {
    unbounded(move || match Systemd::find() {
        Some(systemd) => systemd.stop(&unit).map_err(|error| {
            RuntimeError::because(format!("cannot remove the cgroup {unit}"), &error)
        }),
        // Without systemd there is no scope.
        None => Ok(()),
    })
    .await
}

pub(crate) fn systemd() -> Result<Systemd> {
    Systemd::require().map_err(|error| RuntimeError::failed(error.to_string()))
}
