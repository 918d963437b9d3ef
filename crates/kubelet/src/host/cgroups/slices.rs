//! The slices of the node, the QoS tiers and the pods. With the systemd cgroup driver, systemd
//! creates and removes them. It must know their limits, or a reload reverts them.

use std::{collections::BTreeMap, fmt};

use parking_lot::Mutex;
use rubelet_cgroup_plan::{CgroupLayout, CgroupPath, CgroupValues};
use rubelet_host::systemd::{Slice, Systemd, SystemdError};

/// The calls to systemd. They block until it answers.
pub(in crate::host) trait SliceService: fmt::Debug + Send + Sync {
    /// Starts a slice, or sets the limits of an existing one.
    fn start(&self, slice: &Slice<'_>) -> Result<(), SystemdError>;

    /// Sets limits of a running slice.
    fn set_values(
        &self,
        unit: &str,
        layout: CgroupLayout,
        values: &CgroupValues,
    ) -> Result<(), SystemdError>;

    /// Stops a slice. Does nothing if it does not exist.
    fn stop(&self, unit: &str) -> Result<(), SystemdError>;
}

/// The systemd of this machine. Detected at each call: D-Bus may start or stop at any time.
#[derive(Debug)]
pub(in crate::host) struct MachineSystemd;

impl SliceService for MachineSystemd {
    fn start(&self, slice: &Slice<'_>) -> Result<(), SystemdError> {
        Systemd::require()?.start_slice(slice)
    }

    fn set_values(
        &self,
        unit: &str,
        layout: CgroupLayout,
        values: &CgroupValues,
    ) -> Result<(), SystemdError> {
        Systemd::require()?.set_values(unit, layout, values)
    }

    fn stop(&self, unit: &str) -> Result<(), SystemdError> {
        match Systemd::find() {
            Some(systemd) => systemd.stop(unit),
            // A directory of that name is no slice.
            None => Ok(()),
        }
    }
}

/// The slices that this process created or updated.
#[derive(Debug)]
pub(super) struct Slices {
    service: Box<dyn SliceService>,
    layout: CgroupLayout,
    /// The limits that systemd accepted last, by slice.
    accepted: Mutex<BTreeMap<CgroupPath, CgroupValues>>,
}

/// The call that a slice needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SliceStep {
    /// Start it, also if its cgroup exists: a runtime may have created it without limits, or an
    /// earlier agent with others.
    Start,
    /// Change its limits.
    SetValues,
    /// None.
    Nothing,
}

/// Decides which call a slice needs. `exists`: whether its cgroup exists; `accepted`: the limits that
/// systemd accepted last from this process.
fn slice_step(exists: bool, accepted: Option<&CgroupValues>, values: &CgroupValues) -> SliceStep {
    match accepted {
        Some(accepted) if exists && accepted == values => SliceStep::Nothing,
        Some(_) if exists => SliceStep::SetValues,
        _ => SliceStep::Start,
    }
}

impl Slices {
    pub(super) fn new(service: Box<dyn SliceService>, layout: CgroupLayout) -> Self {
        Self {
            service,
            layout,
            accepted: Mutex::default(),
        }
    }

    /// Starts a slice or sets its limits, unless systemd has them. `exists`: whether its cgroup
    /// exists.
    pub(super) fn ensure(
        &self,
        path: &CgroupPath,
        exists: bool,
        description: &str,
        values: &CgroupValues,
    ) -> Result<(), SystemdError> {
        let step = slice_step(exists, self.accepted.lock().get(path), values);
        let unit = path.name();
        let result = match step {
            SliceStep::Start => self.service.start(&Slice {
                unit,
                description,
                values,
                layout: self.layout,
            }),
            SliceStep::SetValues => self.service.set_values(unit, self.layout, values),
            SliceStep::Nothing => return Ok(()),
        };
        let mut accepted = self.accepted.lock();
        match result {
            Ok(()) => drop(accepted.insert(path.clone(), values.clone())),
            // The unit may be gone: the next attempt starts it.
            Err(_) => drop(accepted.remove(path)),
        }
        result
    }

    /// Whether this process created or updated the slice.
    pub(super) fn has(&self, path: &CgroupPath) -> bool {
        self.accepted.lock().contains_key(path)
    }

    /// Stops a slice, with all units in it.
    pub(super) fn stop(&self, path: &CgroupPath) -> Result<(), SystemdError> {
        self.service.stop(path.name())?;
        self.accepted.lock().remove(path);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_started_or_updated_only_when_needed() {
        let limits = |memory| CgroupValues {
            memory_limit: Some(memory),
            ..CgroupValues::default()
        };
        let (old, new) = (limits(1), limits(2));
        for (exists, accepted, expected) in [
            (false, None, SliceStep::Start),
            (true, None, SliceStep::Start),
            (true, Some(&old), SliceStep::SetValues),
            (true, Some(&new), SliceStep::Nothing),
            // An operator stopped it.
            (false, Some(&old), SliceStep::Start),
            (false, Some(&new), SliceStep::Start),
        ] {
            let step = slice_step(exists, accepted, &new);
            assert_eq!(step, expected, "exists: {exists}, accepted: {accepted:?}");
        }
    }
}
