//! Scopes: where systemd keeps the cgroups, it is asked for that of each container, and told of its
//! limits, and for that of each supervisor.

use std::{
    path::Path,
    process::{Child, Command, Stdio},
};

use rubelet_host::{
    CgroupLayout,
    open_files::limit_as_before,
    systemd::{Scope, Systemd},
};
use rubelet_oci::LinuxResources;
use rubelet_runtime_plan::cgroup;

use crate::{
    engine::unbounded,
    fault::{Fault, Outcome},
};

/// A process that does nothing in a scope, until the container's own is there: systemd takes a scope
/// without a process for one that has ended.
#[derive(Debug)]
pub(super) struct Holder(Child);

impl Drop for Holder {
    fn drop(&mut self) {
        // It ends with its input, unless it was killed with all others in the cgroup.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Starts the scope of a container, with its limits.
pub(super) async fn start(
    scope: cgroup::Scope,
    executable: &Path,
    layout: CgroupLayout,
    limits: LinuxResources,
) -> Outcome<Holder> {
    let mut command = Command::new(executable);
    // systemd may take its time, which is nobody else's.
    unbounded(move || {
        let systemd = systemd()?;
        let holder = limit_as_before(&mut command)
            .args(["shim", "--hold"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| Fault::because("cannot start a process for a scope", &error))?;
        let holder = Holder(holder);
        let scope = Scope {
            unit: &scope.name,
            slice: &scope.slice,
            description: "container of a pod",
            pids: &[holder.0.id()],
            limits: Some(&limits),
            layout,
        };
        systemd
            .start_scope(&scope)
            .map_err(|error| Fault::because("cannot make the container's cgroup", &error))?;
        Ok(holder)
    })
    .await
}

/// Starts the scope of a supervisor that runs already. Blocks.
pub(crate) fn start_for(
    scope: &cgroup::Scope,
    pid: i32,
    layout: CgroupLayout,
) -> Result<(), Fault> {
    let started = systemd()?.start_scope(&Scope {
        unit: &scope.name,
        slice: &scope.slice,
        description: "supervisor of a pod",
        pids: &[pid.cast_unsigned()],
        limits: None,
        layout,
    });
    started
        .map_err(|error| Fault::because("cannot make the cgroup of the pod's supervisor", &error))
}

/// Tells systemd of new limits, which it would undo otherwise when it is reloaded.
pub(super) async fn set_limits(
    unit: String,
    layout: CgroupLayout,
    limits: LinuxResources,
) -> Outcome<()> {
    unbounded(move || {
        systemd()?
            .set_limits(&unit, layout, &limits)
            .map_err(|error| Fault::because("cannot change the limits", &error))
    })
    .await
}

/// Forgets the scope of what has ended.
pub(crate) async fn stop(unit: String) -> Outcome<()> {
    unbounded(move || match Systemd::find() {
        Some(systemd) => systemd
            .stop(&unit)
            .map_err(|error| Fault::because(format!("cannot remove the cgroup {unit}"), &error)),
        // Then there can't be one.
        None => Ok(()),
    })
    .await
}

pub(crate) fn systemd() -> Outcome<Systemd> {
    Systemd::find().ok_or_else(|| {
        Fault::failed(
            "the cgroup driver is systemd, but systemd does not run this machine: set cgroupDriver \
             to cgroupfs",
        )
    })
}
