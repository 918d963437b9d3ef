//! Attaches the program to a cgroup of version 2. It stays attached as long as the cgroup exists,
//! even without a process that holds it.

use std::{
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use rustix::fs::{Mode, OFlags};

use super::DevicesError;
use crate::bpf::{self, Instruction};

/// Attaches the program, then detaches those of earlier calls: one is always attached.
pub(super) fn attach(dir: &Path, program: &[Instruction]) -> Result<(), DevicesError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let cgroup =
        rustix::fs::open(dir, flags, Mode::empty()).map_err(|error| DevicesError::Open {
            dir: dir.to_owned(),
            source: error.into(),
        })?;
    let failed = |source| DevicesError::Attach {
        dir: dir.to_owned(),
        source,
    };
    let program = bpf::load(program).map_err(DevicesError::Load)?;
    let earlier = ours(&cgroup).map_err(failed)?;
    bpf::attach(cgroup.as_fd(), program.as_fd()).map_err(failed)?;
    for program in earlier {
        bpf::detach(cgroup.as_fd(), program.as_fd()).map_err(failed)?;
    }
    Ok(())
}

/// Programs that earlier calls attached. Others, such as those of systemd, stay.
fn ours(cgroup: &OwnedFd) -> std::io::Result<Vec<OwnedFd>> {
    let mut ours = Vec::new();
    for id in bpf::attached(cgroup.as_fd())? {
        let program = bpf::open(id)?;
        if bpf::name(program.as_fd())? == bpf::NAME {
            ours.push(program);
        }
    }
    Ok(ours)
}
