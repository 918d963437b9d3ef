//! Writes values into the files of a cgroup.

use std::{
    fmt,
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use rubelet_base::ErrorChain;
use rubelet_cgroup_plan::{
    CgroupLayout, CgroupPath, CgroupValues, CpuQuota, HugepageLimit, page_size_name,
};

use super::CgroupFs;

/// Why one value is not in force.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The kernel rejected the value, or the file is not writable.
    #[error("cannot write `{value}` to {}", file.display())]
    Refused {
        /// The file.
        file: PathBuf,
        /// The value.
        value: String,
        /// The error.
        source: io::Error,
    },
    /// The file is missing, because the controller is not mounted or not enabled.
    #[error("cannot write `{value}` to {file}: the cgroup controller `{controller}` is missing")]
    NoController {
        /// The file; only its name if the controller is not mounted at all.
        file: String,
        /// The value.
        value: String,
        /// The controller.
        controller: String,
    },
    /// The value is invalid here, so it was not tried.
    #[error("cannot put {field} `{value}` into force: {why}")]
    Unfit {
        /// The field of the specification.
        field: String,
        /// The value.
        value: String,
        /// The reason.
        why: String,
    },
}

/// All values of a cgroup that were rejected; the others are in force.
#[derive(Debug)]
pub struct RefusedValues(pub Vec<WriteError>);

impl fmt::Display for RefusedValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{}", ErrorChain(error))?;
        }
        Ok(())
    }
}

// The causes are in the message: an error can have only one source.
impl std::error::Error for RefusedValues {}

impl CgroupFs {
    /// Writes all values that are set. A rejected value does not keep the others from being
    /// written.
    ///
    /// # Errors
    /// The values that are not in force.
    pub fn write(&self, path: &CgroupPath, values: &CgroupValues) -> Result<(), RefusedValues> {
        let mut writer = Writer::new(self, path);
        writer.write_all(values);
        writer.finish()
    }
}

/// Writes values into one cgroup and collects the errors.
pub(super) struct Writer<'a> {
    fs: &'a CgroupFs,
    path: &'a CgroupPath,
    refused: Vec<WriteError>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(fs: &'a CgroupFs, path: &'a CgroupPath) -> Self {
        Self {
            fs,
            path,
            refused: Vec::new(),
        }
    }

    pub(super) fn finish(self) -> Result<(), RefusedValues> {
        if self.refused.is_empty() {
            return Ok(());
        }
        Err(RefusedValues(self.refused))
    }

    fn write_all(&mut self, values: &CgroupValues) {
        let v2 = self.fs.layout == CgroupLayout::V2;
        if let Some(cpu) = values.cpu {
            let (file, value) = if v2 {
                ("cpu.weight", cpu.weight)
            } else {
                ("cpu.shares", cpu.shares)
            };
            self.write("cpu", file, &value.to_string());
        }
        match values.cpu_quota {
            Some(quota) if v2 => self.write("cpu", "cpu.max", &cpu_max(quota)),
            Some(quota) => {
                let quota_us = quota.quota_us.map(|us| us.to_string());
                let quota_us = quota_us.as_deref().unwrap_or("-1");
                self.write_quota_v1(quota_us, &quota.period_us.to_string());
            }
            None => {}
        }
        if let Some(bytes) = values.memory_limit {
            let file = if v2 {
                "memory.max"
            } else {
                "memory.limit_in_bytes"
            };
            self.write("memory", file, &bytes.to_string());
        }
        for (file, bytes) in [
            ("memory.min", values.memory_min),
            ("memory.low", values.memory_low),
        ] {
            if let Some(bytes) = bytes.filter(|_| v2) {
                self.write("memory", file, &bytes.to_string());
            }
        }
        if let Some(pids) = values.pids_limit {
            self.write("pids", "pids.max", &pids.to_string());
        }
        for limit in &values.hugepages {
            self.write_hugepages(*limit, v2);
        }
    }

    /// Writes the two numbers of a version 1 quota, in an order that the kernel accepts.
    pub(super) fn write_quota_v1(&mut self, quota_us: &str, period_us: &str) {
        // The kernel validates each write on its own: a shorter period with the old, larger quota
        // may exceed the parent's bandwidth, and then the quota must be written first.
        if self.attempt("cpu", "cpu.cfs_period_us", period_us).is_ok() {
            self.write("cpu", "cpu.cfs_quota_us", quota_us);
        } else {
            self.write("cpu", "cpu.cfs_quota_us", quota_us);
            self.write("cpu", "cpu.cfs_period_us", period_us);
        }
    }

    fn write_hugepages(&mut self, limit: HugepageLimit, v2: bool) {
        let name = page_size_name(limit.page_size);
        let suffix = if v2 { "max" } else { "limit_in_bytes" };
        let value = limit.limit.to_string();
        let answer = self.attempt("hugetlb", &format!("hugetlb.{name}.{suffix}"), &value);
        if let Err(error) = answer {
            // Without the controller there is no limit: that matters only for a pod that requests
            // pages.
            let asks = limit.limit > 0 && limit.limit < HugepageLimit::UNBOUNDED;
            if asks || matches!(error, WriteError::Refused { .. }) {
                self.refused.push(error);
            }
            return;
        }
        // Kernels from 5.7 also count reservations, which fail early instead of by a signal.
        let reserved = format!("hugetlb.{name}.rsvd.{suffix}");
        if let Err(error @ WriteError::Refused { .. }) = self.attempt("hugetlb", &reserved, &value)
        {
            self.refused.push(error);
        }
    }

    /// Writes one value.
    pub(super) fn write(&mut self, controller: &str, file: &str, value: &str) {
        if let Err(error) = self.attempt(controller, file, value) {
            self.refused.push(error);
        }
    }

    /// Collects the error of an attempt.
    pub(super) fn push(&mut self, error: WriteError) {
        self.refused.push(error);
    }

    /// Records a value that is not even tried.
    pub(super) fn refuse(&mut self, field: &str, value: &str, why: &str) {
        self.refused.push(WriteError::Unfit {
            field: field.to_owned(),
            value: value.to_owned(),
            why: why.to_owned(),
        });
    }

    /// The text of a file; `None` if it can't be read.
    pub(super) fn read(&self, controller: &str, file: &str) -> Option<String> {
        let dir = self.fs.controller_dir(controller, self.path)?;
        fs::read_to_string(dir.join(file)).ok()
    }

    /// Writes one value, for callers that handle the error themselves.
    pub(super) fn attempt(
        &self,
        controller: &str,
        file: &str,
        value: &str,
    ) -> Result<(), WriteError> {
        match self.fs.controller_dir(controller, self.path) {
            Some(dir) => write_file(&dir.join(file), value, Some(controller)),
            None => Err(WriteError::NoController {
                file: file.to_owned(),
                value: value.to_owned(),
                controller: controller.to_owned(),
            }),
        }
    }
}

fn cpu_max(quota: CpuQuota) -> String {
    let quota_us = quota
        .quota_us
        .map_or_else(|| "max".to_owned(), |us| us.to_string());
    format!("{quota_us} {}", quota.period_us)
}

/// Writes a file of the kernel in one write. It is never created: if the file of a controller is
/// missing, so is the controller.
pub(super) fn write_file(
    file: &Path,
    value: &str,
    controller: Option<&str>,
) -> Result<(), WriteError> {
    let opened = OpenOptions::new().write(true).truncate(true).open(file);
    let Err(source) = opened.and_then(|mut open| open.write_all(value.as_bytes())) else {
        return Ok(());
    };
    let value = value.to_owned();
    match controller {
        Some(controller) if source.kind() == io::ErrorKind::NotFound => {
            Err(WriteError::NoController {
                file: file.display().to_string(),
                value,
                controller: controller.to_owned(),
            })
        }
        _ => Err(WriteError::Refused {
            file: file.to_owned(),
            value,
            source,
        }),
    }
}
