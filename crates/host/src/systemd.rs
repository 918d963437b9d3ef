//! systemd as the keeper of cgroups: the `systemd` cgroup driver asks it for a scope for each
//! container instead of making a folder. A small client of its own for the few calls, over the
//! system's D-Bus, or over systemd's private socket where no bus runs. Blocks.

mod connection;
mod limits;
mod message;
mod wire;

use std::{
    io,
    path::{Path, PathBuf},
};

use rubelet_oci::LinuxResources;

use self::{
    connection::Connection,
    message::{Call, Reply},
    wire::{Value, Writer},
};
use crate::CgroupLayout;

/// systemd, and how it is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Systemd {
    socket: PathBuf,
    /// Whether a bus stands between, which wants to be greeted and told which signals to pass on.
    bus: bool,
}

/// A scope: processes that systemd keeps in a cgroup without having started them.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// Its name: `rubelet-0123.scope`.
    pub unit: &'a str,
    /// Name of the slice that it is put into: `kubepods-besteffort.slice`. It is made if missing.
    pub slice: &'a str,
    /// What operators see.
    pub description: &'a str,
    /// Processes that are put into it; at least one has to live.
    pub pids: &'a [u32],
    /// Limits, so that systemd doesn't undo them when it is reloaded. They still have to be applied:
    /// systemd doesn't know them all.
    pub limits: Option<&'a LinuxResources>,
    /// The layout of the machine's cgroups.
    pub layout: CgroupLayout,
}

/// Why systemd didn't do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum SystemdError {
    /// It can't be reached.
    #[error("cannot talk to systemd through {}", socket.display())]
    Unreachable {
        /// The socket.
        socket: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What came back is not D-Bus.
    #[error("systemd's answer through {} cannot be read: {what}", socket.display())]
    Unreadable {
        /// The socket.
        socket: PathBuf,
        /// What is wrong.
        what: &'static str,
    },
    /// It said no.
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
    /// It tried and failed.
    #[error("systemd's job for {unit} ended as `{result}`: see `systemctl status {unit}`")]
    Job {
        /// The unit.
        unit: String,
        /// What became of the job, such as `failed` or `timeout`.
        result: String,
    },
}

const MANAGER: &str = "org.freedesktop.systemd1.Manager";
const NO_SUCH_UNIT: &str = "org.freedesktop.systemd1.NoSuchUnit";
const UNIT_EXISTS: &str = "org.freedesktop.systemd1.UnitExists";

impl Systemd {
    /// systemd, if it runs this machine.
    #[must_use]
    pub fn find() -> Option<Self> {
        Self::find_below(Path::new("/"))
    }

    fn find_below(root: &Path) -> Option<Self> {
        // The sign that `sd_booted(3)` describes.
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

    /// Starts a scope and waits until it is there. One of that name which has failed is forgotten
    /// first.
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
            // One that has failed is not kept until somebody resets it.
            ("CollectMode", Value::Text("inactive-or-failed".to_owned())),
            ("PIDs", Value::Numbers32(scope.pids.to_vec())),
        ];
        for accounting in [
            "CPUAccounting",
            "MemoryAccounting",
            "TasksAccounting",
            "IOAccounting",
        ] {
            properties.push((accounting, Value::Bool(true)));
        }
        if let Some(limits) = scope.limits {
            properties.extend(limits::properties(limits, scope.layout));
        }
        let mut start = Writer::default();
        start.text(scope.unit);
        start.text("fail");
        start.properties(&properties);
        start.no_auxiliary_units();
        let start = Call::new("StartTransientUnit", "ssa(sv)a(sa(sv))", start);

        let mut reply = connection.call(&start)?;
        if reply.error() == Some(UNIT_EXISTS) {
            let mut unit = Writer::default();
            unit.text(scope.unit);
            connection.call(&Call::new("ResetFailedUnit", "s", unit))?;
            reply = connection.call(&start)?;
        }
        let job = job(reply, "the start", scope.unit)?;
        connection.wait_for(&job, scope.unit)
    }

    /// Starts a unit and waits until it is there, such as a slice, which needs no file.
    ///
    /// # Errors
    /// See [`SystemdError`].
    pub fn start(&self, unit: &str) -> Result<(), SystemdError> {
        let mut connection = Connection::open(self)?;
        let mut start = Writer::default();
        start.text(unit);
        start.text("replace");
        let reply = connection.call(&Call::new("StartUnit", "ss", start))?;
        let job = job(reply, "the start", unit)?;
        connection.wait_for(&job, unit)
    }

    /// Stops a unit, with all processes that are left in it, and waits for that. Does nothing if it
    /// isn't there.
    ///
    /// # Errors
    /// See [`SystemdError`].
    pub fn stop(&self, unit: &str) -> Result<(), SystemdError> {
        let mut connection = Connection::open(self)?;
        let mut stop = Writer::default();
        stop.text(unit);
        stop.text("replace");
        let reply = connection.call(&Call::new("StopUnit", "ss", stop))?;
        if reply.error() == Some(NO_SUCH_UNIT) {
            return Ok(());
        }
        let job = job(reply, "the stop", unit)?;
        connection.wait_for(&job, unit)
    }

    /// Tells systemd of new limits of a unit, until the next start of the machine.
    ///
    /// # Errors
    /// See [`SystemdError`].
    pub fn set_limits(
        &self,
        unit: &str,
        layout: CgroupLayout,
        limits: &LinuxResources,
    ) -> Result<(), SystemdError> {
        let properties = limits::properties(limits, layout);
        if properties.is_empty() {
            return Ok(());
        }
        let mut set = Writer::default();
        set.text(unit);
        set.bool(true);
        set.properties(&properties);
        let reply =
            Connection::open(self)?.call(&Call::new("SetUnitProperties", "sba(sv)", set))?;
        done(reply, "new limits", unit).map(drop)
    }
}

/// The reply, unless it is a refusal.
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

/// The job that a reply names.
fn job(reply: Reply, what: &'static str, unit: &str) -> Result<String, SystemdError> {
    done(reply, what, unit).map(|reply| reply.first_text)
}

#[cfg(test)]
mod tests;
