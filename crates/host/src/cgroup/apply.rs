//! Applies a container's limits. They have the format of the OCI runtime specification, in the
//! units of version 1; the values for version 2 are computed here.

mod cpu;
mod memory;
mod unified;

use rubelet_cgroup_plan::{CgroupLayout, CgroupPath};
use rubelet_oci::{HugepageLimit, LinuxResources, Pids};

pub(crate) use self::cpu::weight as cpu_weight;
use super::{
    CgroupFs,
    write::{RefusedValues, WriteError, Writer},
};

impl CgroupFs {
    /// Writes all limits that are set, except for device rules: see [`CgroupFs::apply_devices`].
    /// May be called again at any time, with or without processes in the cgroup. A rejected limit
    /// does not keep the others from being written.
    ///
    /// # Errors
    /// The limits that are not in force.
    pub fn apply(&self, path: &CgroupPath, limits: &LinuxResources) -> Result<(), RefusedValues> {
        let mut writer = Writer::new(self, path);
        let v2 = self.layout() == CgroupLayout::V2;
        if let Some(cpu) = &limits.cpu {
            cpu::apply(&mut writer, cpu, v2);
        }
        match &limits.memory {
            Some(memory) if v2 => memory::apply_v2(&mut writer, *memory),
            Some(memory) => memory::apply_v1(&mut writer, *memory),
            None => {}
        }
        if let Some(pids) = limits.pids {
            apply_pids(&mut writer, pids);
        }
        for limit in &limits.hugepage_limits {
            apply_hugepages(&mut writer, limit, v2);
        }
        unified::apply(&mut writer, &limits.unified, v2);
        writer.finish()
    }
}

fn apply_pids(writer: &mut Writer<'_>, pids: Pids) {
    match pids.limit {
        // Nothing could run in it: in the specification 0 means that no limit is requested.
        0 => {}
        limit if limit < 0 => writer.write("pids", "pids.max", "max"),
        limit => writer.write("pids", "pids.max", &limit.to_string()),
    }
}

fn apply_hugepages(writer: &mut Writer<'_>, limit: &HugepageLimit, v2: bool) {
    let HugepageLimit { page_size, limit } = limit;
    if page_size.is_empty() || page_size.contains(['/', '.']) {
        writer.refuse(
            "hugepageLimits",
            page_size,
            "this is not the size of a page, such as `2MB`",
        );
        return;
    }
    let suffix = if v2 { "max" } else { "limit_in_bytes" };
    let value = limit.to_string();
    writer.write("hugetlb", &format!("hugetlb.{page_size}.{suffix}"), &value);
    // Kernels from 5.7 also count reservations, which fail early instead of by a signal.
    let reserved = format!("hugetlb.{page_size}.rsvd.{suffix}");
    match writer.attempt("hugetlb", &reserved, &value) {
        Ok(()) | Err(WriteError::NoController { .. }) => {}
        Err(error) => writer.push(error),
    }
}

#[cfg(test)]
mod tests;
