//! Slices: cgroups for other slices and scopes, without processes of their own. systemd starts the
//! slices above one, which its name determines.

use rubelet_cgroup_plan::{CgroupLayout, CgroupValues};

use super::{
    Systemd, SystemdError, UNIT_EXISTS, connection::Connection, job, limits, start_transient,
};
use crate::dbus::wire::Value;

/// A slice with its limits.
#[derive(Debug, Clone, Copy)]
pub struct Slice<'a> {
    /// Its name: `kubepods-besteffort.slice`, which is in `kubepods.slice`.
    pub unit: &'a str,
    /// Description for operators.
    pub description: &'a str,
    /// Its limits. systemd has no property for huge pages: the caller writes their limits to the
    /// cgroup.
    pub values: &'a CgroupValues,
    /// The layout of the machine's cgroups.
    pub layout: CgroupLayout,
}

impl Systemd {
    /// Starts a slice and waits until it is active. An existing one is updated, whether a unit file
    /// or an earlier call defines it. Limits that `values` does not contain stay unchanged.
    ///
    /// # Errors
    /// See [`SystemdError`].
    pub fn start_slice(&self, slice: &Slice<'_>) -> Result<(), SystemdError> {
        let limits = limits::of_values(slice.values, slice.layout).into_inner();
        let mut properties: Vec<(&str, Value)> = vec![
            ("Description", Value::Text(slice.description.to_owned())),
            // With them, a shutdown would stop the slice and its containers at once.
            ("DefaultDependencies", Value::Bool(false)),
        ];
        properties.extend(super::accounting());
        properties.extend(limits.iter().cloned());
        let mut connection = Connection::open(self)?;
        let start = start_transient(slice.unit, "replace", &properties);
        let reply = connection.call(&start)?;
        if reply.error() == Some(UNIT_EXISTS) {
            // It may be inactive: a unit file defines it, or systemd has not unloaded it yet.
            connection.start(slice.unit)?;
            properties.drain(..2);
            return connection.set(slice.unit, &properties);
        }
        let job = job(reply, "the start", slice.unit)?;
        connection.wait_for(&job, slice.unit)
    }

    /// Sets limits of a running slice until it is stopped. Limits that `values` does not contain stay
    /// unchanged.
    ///
    /// # Errors
    /// See [`SystemdError`].
    pub fn set_values(
        &self,
        unit: &str,
        layout: CgroupLayout,
        values: &CgroupValues,
    ) -> Result<(), SystemdError> {
        let properties = limits::of_values(values, layout);
        if properties.is_empty() {
            return Ok(());
        }
        Connection::open(self)?.set(unit, &properties.into_inner())
    }
}
