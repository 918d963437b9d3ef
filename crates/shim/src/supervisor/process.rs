//! What a shim does to its own process, once, at its start.

use std::{
    error::Error,
    fs::{self, File},
    io,
    os::fd::OwnedFd,
    path::Path,
    sync::{Mutex, PoisonError},
};

use rubelet_base::{ErrorChain, cgroup::CgroupPath};
use rubelet_host::{CgroupFs, CgroupLayout, alloc, cgroup::CgroupTarget};
use rustix::fs::{FileType, Mode};

/// As unlikely to be killed for want of memory as a process that may be killed can be.
const OOM_SCORE_ADJ: &str = "-998";

/// Takes the connection out of the standard input, if there is one, and lets nothing else of the
/// starting process in.
pub(super) fn take_over_descriptors() -> Option<OwnedFd> {
    let stdin = io::stdin();
    let is_socket = rustix::fs::fstat(&stdin)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Socket);
    close_from(3);
    let agent = is_socket
        .then(|| rustix::io::fcntl_dupfd_cloexec(&stdin, 3).ok())
        .flatten();
    if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
        // A standard stream that can't be replaced is the agent's affair.
        let _ = rustix::stdio::dup2_stdin(&null);
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stderr(&null);
    }
    agent
}

/// What the latest mistake of the shim was.
static PANIC: Mutex<String> = Mutex::new(String::new());

/// Keeps what a mistake of the shim was: its standard error leads nowhere.
fn keep_panics() {
    std::panic::set_hook(Box::new(|panic| {
        *PANIC.lock().unwrap_or_else(PoisonError::into_inner) = panic.to_string();
    }));
}

/// What the latest mistake of the shim was.
pub(super) fn last_panic() -> String {
    let mut panic = PANIC.lock().unwrap_or_else(PoisonError::into_inner);
    format!("a mistake in the shim: {}", std::mem::take(&mut *panic))
}

fn close_from(first: u32) {
    // SAFETY: nothing in this process owns a descriptor yet: this is the first thing it does, and
    // the standard library opens none by itself.
    #[allow(unsafe_code)]
    let _ = unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) };
}

/// What the process has when it is set up.
#[derive(Debug, Default)]
pub(super) struct Prepared {
    /// What could not be had and isn't worth failing.
    pub(super) warnings: Vec<String>,
    /// The cgroups of the machine, if they were looked for.
    pub(super) cgroups: Option<CgroupFs>,
    /// Its own cgroup if it is still to be joined in the unified hierarchy. Beside version 1 nothing
    /// is limited or counted there, and the kernel takes up to 15 ms for it: it is done when the pod
    /// runs.
    pub(super) to_join: Option<CgroupTarget>,
}

/// Makes the process a supervisor that outlives its agent.
pub(super) fn set_up(cgroup: Option<&CgroupPath>) -> Result<Prepared, String> {
    let mut prepared = Prepared::default();
    alloc::limit_arenas();
    keep_panics();
    let failed = |what: &str, error: &(dyn Error + 'static)| {
        format!("a shim can't {what}: {}", ErrorChain(error))
    };
    // A shim that is started by hand may lead a process group, and can't lead a session then.
    let _ = rustix::process::setsid();
    rustix::process::chdir("/").map_err(|error| failed("change to /", &error))?;
    rustix::process::umask(Mode::from_raw_mode(0o022));
    let _ = rustix::thread::set_name(c"rubelet-shim");
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(|error| failed("become the reaper of its descendants", &error))?;
    super::signals::stay().map_err(|error| failed("install its signal handlers", &error))?;
    if let Some(cgroup) = cgroup {
        let cgroups = CgroupFs::detect(Path::new("/sys/fs/cgroup"))
            .map_err(|error| failed("find the cgroups", &error))?;
        let target = cgroups
            .create(cgroup)
            .map_err(|error| failed(&format!("make its cgroup {cgroup}"), &error))?;
        let is_hybrid = cgroups.layout() == CgroupLayout::Hybrid;
        match is_hybrid {
            true => target.join_rest(),
            false => target.join_self(),
        }
        .map_err(|error| failed(&format!("move to its cgroup {cgroup}"), &error))?;
        prepared.to_join = is_hybrid.then_some(target);
        prepared.cgroups = Some(cgroups);
    }
    if let Err(error) = fs::write("/proc/self/oom_score_adj", OOM_SCORE_ADJ) {
        prepared.warnings.push(format!(
            "the shim can't protect itself from being killed for want of memory: writing \
             {OOM_SCORE_ADJ} to /proc/self/oom_score_adj: {error}"
        ));
    }
    Ok(prepared)
}
