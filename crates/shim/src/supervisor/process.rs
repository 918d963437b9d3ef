//! The setup of the shim's own process at its start.

use std::{
    fs::{self, File},
    io,
    os::fd::OwnedFd,
    path::Path,
    sync::{Mutex, PoisonError},
};

use rubelet_cgroup_plan::{CgroupLayout, CgroupPath};
use rubelet_host::{CgroupFs, alloc, cgroup::CgroupTarget};
use rustix::fs::{FileType, Mode};

use super::start_error::ShimStartError;

/// Nearly exempt from the OOM killer; only -1000 exempts entirely.
const OOM_SCORE_ADJ: &str = "-998";

/// Moves the agent's connection away from standard input, and closes all other inherited
/// descriptors.
pub(super) fn take_over_descriptors() -> Option<OwnedFd> {
    let stdin = io::stdin();
    let is_socket = rustix::fs::fstat(&stdin)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Socket);
    // Descriptors leaked by the agent would keep its files, sockets and locks open while the pod
    // runs.
    close_from(3);
    let agent = is_socket
        .then(|| rustix::io::fcntl_dupfd_cloexec(&stdin, 3).ok())
        .flatten();
    if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
        // Errors are ignored: then the agent's streams stay in place.
        let _ = rustix::stdio::dup2_stdin(&null);
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stderr(&null);
    }
    agent
}

/// The message of the last panic.
static PANIC: Mutex<String> = Mutex::new(String::new());

/// Stores panic messages, because standard error is /dev/null.
fn keep_panics() {
    std::panic::set_hook(Box::new(|panic| {
        *PANIC.lock().unwrap_or_else(PoisonError::into_inner) = panic.to_string();
    }));
}

/// The message of the last panic.
pub(super) fn last_panic() -> String {
    let mut panic = PANIC.lock().unwrap_or_else(PoisonError::into_inner);
    format!(
        "the shim panicked (this is a bug): {}",
        std::mem::take(&mut *panic)
    )
}

fn close_from(first: u32) {
    // SAFETY: nothing in this process owns a descriptor yet: this is the first thing it does, and
    // the standard library opens none by itself.
    #[allow(unsafe_code)]
    let _ = unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) };
}

/// The result of the setup.
#[derive(Debug, Default)]
pub(super) struct ShimSetup {
    /// Warnings about optional steps that failed.
    pub(super) warnings: Vec<String>,
    /// The cgroup hierarchies, if they were detected.
    pub(super) cgroups: Option<CgroupFs>,
    /// The shim's cgroup, if it is not joined in the unified hierarchy yet. In a hybrid setup with
    /// version 1 no controllers are there, and joining takes up to 15 ms in the kernel, so it is
    /// done later.
    pub(super) to_join: Option<CgroupTarget>,
}

/// Makes the process a shim that outlives its agent.
pub(super) fn set_up(cgroup: Option<&CgroupPath>) -> Result<ShimSetup, ShimStartError> {
    let mut prepared = ShimSetup::default();
    alloc::limit_arena();
    keep_panics();
    // Fails for a process group leader, such as a shim that is started from a shell.
    let _ = rustix::process::setsid();
    rustix::process::chdir("/").map_err(|error| ShimStartError::step("change to /", error))?;
    rustix::process::umask(Mode::from_raw_mode(0o022));
    let _ = rustix::thread::set_name(c"rubelet-shim");
    // An external runtime exits after `create`: with a subreaper, the init that it created becomes
    // a child of the shim, which can reap it.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(|error| ShimStartError::step("become the reaper of its descendants", error))?;
    super::signals::install_handlers()
        .map_err(|error| ShimStartError::step("install its signal handlers", error))?;
    if let Some(cgroup) = cgroup {
        let cgroups = CgroupFs::detect(Path::new("/sys/fs/cgroup"))
            .map_err(|error| ShimStartError::step("find the cgroups", error))?;
        let target = cgroups
            .create(cgroup)
            .map_err(|error| ShimStartError::step(format!("create its cgroup {cgroup}"), error))?;
        let is_hybrid = cgroups.layout() == CgroupLayout::Hybrid;
        match is_hybrid {
            true => target.join_rest(),
            false => target.join_self(),
        }
        .map_err(|error| ShimStartError::step(format!("move to its cgroup {cgroup}"), error))?;
        prepared.to_join = is_hybrid.then_some(target);
        prepared.cgroups = Some(cgroups);
    }
    // Only a warning: lowering the value takes CAP_SYS_RESOURCE.
    if let Err(error) = fs::write("/proc/self/oom_score_adj", OOM_SCORE_ADJ) {
        prepared.warnings.push(format!(
            "the shim cannot protect itself from the OOM killer: writing \
             {OOM_SCORE_ADJ} to /proc/self/oom_score_adj: {error}"
        ));
    }
    Ok(prepared)
}
