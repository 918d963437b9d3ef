//! systemd as the manager of cgroups: the `systemd` cgroup driver requests a slice for each pod and
//! a scope for each container instead of creating directories. A small client for the few calls,
//! over the system's D-Bus, or over systemd's private socket if no bus runs. Blocks.

mod connection;
mod limits;
mod slice;

use std::{
    io,
    path::{Path, PathBuf},
};

use rubelet_cgroup_plan::CgroupLayout;
use rubelet_oci::LinuxResources;

use self::connection::Connection;
pub use self::slice::Slice;
use crate::dbus::{
    message::{Call, Reply, SYSTEMD},
    wire::{Value, Writer},
};

/// The connection settings of systemd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Systemd {
    socket: PathBuf,
    /// Whether it is reached through a bus, which needs `Hello` and match rules for signals.
    bus: bool,
}

/// A scope: processes in a cgroup that systemd manages but did not start.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// Its name: `rubelet-0123.scope`.
    pub unit: &'a str,
    /// Name of its slice: `kubepods-besteffort.slice`. It is created if missing.
    pub slice: &'a str,
    /// Description for operators.
    pub description: &'a str,
    /// Initial processes; at least one must be alive.
    pub pids: &'a [u32],
    /// Limits, so that systemd does not revert them on a reload. They still have to be applied:
    /// systemd does not support all of them.
    pub limits: Option<&'a LinuxResources>,
    /// The layout of the machine's cgroups.
    pub layout: CgroupLayout,
}

/// Why a request to systemd failed.
#[derive(Debug, thiserror::Error)]
pub enum SystemdError {
    /// It does not manage this machine.
    #[error(
        "cgroupDriver is systemd, but systemd is not the init system of this machine: set cgroupDriver \
         to cgroupfs"
    )]
    Missing,
    /// It can't be reached.
    #[error("cannot reach systemd through {}", socket.display())]
    Unreachable {
        /// The socket.
        socket: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The reply is not valid D-Bus.
    #[error("systemd's answer through {} cannot be read: {what}", socket.display())]
    Unreadable {
        /// The socket.
        socket: PathBuf,
        /// The error.
        what: &'static str,
    },
    /// It rejected the call.
    #[error("systemd refused {what} of {unit}: {message} ({name})")]
    Refused {
        /// The call.
        what: &'static str,
        /// The unit.
        unit: String,
        /// Name of the error.
        name: String,
        /// Text of the error.
        message: String,
    },
    /// Its job failed.
    #[error("systemd's job for {unit} ended as `{result}`: see `systemctl status {unit}`")]
    Job {
        /// The unit.
        unit: String,
        /// The result of the job, such as `failed` or `timeout`.
        result: String,
    },
}

const NO_SUCH_UNIT: &str = "org.freedesktop.systemd1.NoSuchUnit";
const UNIT_EXISTS: &str = "org.freedesktop.systemd1.UnitExists";

impl Systemd {
    /// systemd, if it manages this machine.
    #[must_use]
    pub fn find() -> Option<Self> {
        Self::find_below(Path::new("/"))
    }

    /// systemd, for callers that need it.
    ///
    /// # Errors
    /// [`SystemdError::Missing`].
    pub fn require() -> Result<Self, SystemdError> {
        Self::find().ok_or(SystemdError::Missing)
    }

    fn find_below(root: &Path) -> Option<Self> {
        // The test that `sd_booted(3)` describes.
        if !root.join("run/systemd/system").is_dir() {
            return None;
        }
        let bus = root.join("run/dbus/system_bus_socket");
        if bus.exists() {
            return Some(Self {
                socket: bus,
                bus: true,
            });
        }
        Some(Self {
            socket: root.join("run/systemd/private"),
            bus: false,
        })
    }

    /// systemd behind the D-Bus at that socket.
    #[must_use]
    pub fn on_bus(socket: &Path) -> Self {
        Self {
            socket: socket.to_owned(),
            bus: true,
        }
    }

    /// Starts a scope and waits until it is active. A failed one of that name is reset first.
    ///
    /// # Errors
    /// See [`SystemdError`].
    pub fn start_scope(&self, scope: &Scope<'_>) -> Result<(), SystemdError> {
        let mut connection = Connection::open(self)?;
        let mut properties: Vec<(&str, Value)> = vec![
            ("Description", Value::Text(scope.description.to_owned())),
            ("Slice", Value::Text(scope.slice.to_owned())),
            ("Delegate", Value::Bool(true)),
            ("DefaultDependencies", Value::Bool(false)),
            // A failed one is collected without a reset.
            ("CollectMode", Value::Text("inactive-or-failed".to_owned())),
            ("PIDs", Value::Numbers32(scope.pids.to_vec())),
        ];
        properties.extend(accounting());
        if let Some(limits) = scope.limits {
            properties.extend(limits::of_resources(limits, scope.layout).into_inner());
        }
        let start = start_transient(scope.unit, "fail", &properties);
        let mut reply = connection.call(&start)?;
        if reply.error() == Some(UNIT_EXISTS) {
            let mut unit = Writer::default();
            unit.text(scope.unit);
            connection.call(&Call::new(SYSTEMD, "ResetFailedUnit", "s", unit))?;
            reply = connection.call(&start)?;
        }
        let job = job(reply, "the start", scope.unit)?;
        connection.wait_for(&job, scope.unit)
    }

    /// Starts a unit and waits until it is active, such as a slice, which needs no file.
    ///
    /// # Errors
    /// See [`SystemdError`].
    pub fn start(&self, unit: &str) -> Result<(), SystemdError> {
        Connection::open(self)?.start(unit)
    }

    /// Stops a unit, with all remaining processes, and waits for the end. Does nothing if it does
    /// not exist.
    ///
    /// # Errors
    /// See [`SystemdError`].
    pub fn stop(&self, unit: &str) -> Result<(), SystemdError> {
        let mut connection = Connection::open(self)?;
        let mut stop = Writer::default();
        stop.text(unit);
        stop.text("replace");
        let reply = connection.call(&Call::new(SYSTEMD, "StopUnit", "ss", stop))?;
        if reply.error() == Some(NO_SUCH_UNIT) {
            return Ok(());
        }
        let job = job(reply, "the stop", unit)?;
        connection.wait_for(&job, unit)
    }

    /// Sets new limits of a unit in systemd, until the next boot.
    ///
    /// # Errors
    /// See [`SystemdError`].
    pub fn set_limits(
        &self,
        unit: &str,
        layout: CgroupLayout,
        limits: &LinuxResources,
    ) -> Result<(), SystemdError> {
        let properties = limits::of_resources(limits, layout);
        if properties.is_empty() {
            return Ok(());
        }
        Connection::open(self)?.set(unit, &properties.into_inner())
    }
}

impl Connection<'_> {
    fn start(&mut self, unit: &str) -> Result<(), SystemdError> {
        let mut start = Writer::default();
        start.text(unit);
        start.text("replace");
        let reply = self.call(&Call::new(SYSTEMD, "StartUnit", "ss", start))?;
        let job = job(reply, "the start", unit)?;
        self.wait_for(&job, unit)
    }

    /// Sets properties of a unit until the next boot.
    fn set(&mut self, unit: &str, properties: &[(&str, Value)]) -> Result<(), SystemdError> {
        let mut set = Writer::default();
        set.text(unit);
        set.bool(true);
        set.properties(properties);
        let reply = self.call(&Call::new(SYSTEMD, "SetUnitProperties", "sba(sv)", set))?;
        done(reply, "new limits", unit).map(drop)
    }
}

/// A call that starts a unit without a file. `mode` says what to do about a conflicting job.
fn start_transient(unit: &str, mode: &str, properties: &[(&str, Value)]) -> Call {
    let mut start = Writer::default();
    start.text(unit);
    start.text(mode);
    start.properties(properties);
    start.no_auxiliary_units();
    Call::new(SYSTEMD, "StartTransientUnit", "ssa(sv)a(sa(sv))", start)
}

/// Makes systemd enable the controllers for a unit, also without limits.
fn accounting() -> impl Iterator<Item = (&'static str, Value)> {
    [
        "CPUAccounting",
        "MemoryAccounting",
        "TasksAccounting",
        "IOAccounting",
    ]
    .into_iter()
    .map(|name| (name, Value::Bool(true)))
}

/// The reply, unless it is an error.
fn done(reply: Reply, what: &'static str, unit: &str) -> Result<Reply, SystemdError> {
    match reply.refusal {
        None => Ok(reply),
        Some(refusal) => Err(SystemdError::Refused {
            what,
            unit: unit.to_owned(),
            name: refusal.name,
            message: refusal.message,
        }),
    }
}

/// The job in a reply.
fn job(reply: Reply, what: &'static str, unit: &str) -> Result<String, SystemdError> {
    let reply = done(reply, what, unit)?;
    Ok(reply.body.first_text().unwrap_or_default().to_owned())
}

#[cfg(test)]
pub(crate) mod tests;
