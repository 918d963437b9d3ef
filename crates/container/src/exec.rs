//! Forks a process that joins a running container.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rubelet_host::cgroup::CgroupTarget;
use rubelet_oci::{NamespaceKind, Process, Spec};
use rustix::{
    io::Errno,
    process::{DumpableBehavior, set_dumpable_behavior, setsid},
    thread::{ThreadNameSpaceType, move_into_thread_name_spaces},
};

use crate::{
    LaunchError, Launching, Stdio,
    ids::HostIds,
    in_root::RootDir,
    init::{StdioSetup, become_root_inside},
    launch::{in_pid_namespace, open_channel, stdio_setup},
    proc::ExecLabel,
    process_setup::ProcessSetup,
    report::ChildReporter,
    stdio::Terminal,
    step::{Step, StepError, reason},
    sys::{clone, process},
};

/// A process to start in a running container.
#[derive(Debug)]
pub struct ExecLaunch<'a> {
    /// The container's init.
    pub target: BorrowedFd<'a>,
    /// The container's specification, which lists its own namespaces.
    pub spec: &'a Spec,
    /// The process.
    pub process: &'a Process,
    /// Its standard input, output and error.
    pub stdio: Stdio,
    /// The cgroup, joined before the process does anything else.
    pub cgroup: &'a CgroupTarget,
    /// The compiled seccomp filter, as for [`launch`](crate::launch).
    pub seccomp: Option<&'a [u8]>,
}

/// Forks the process and returns at once.
///
/// # Errors
/// The process is invalid, or the container is not running.
pub fn exec(exec: ExecLaunch<'_>) -> Result<Launching, LaunchError> {
    let ExecLaunch {
        target,
        spec,
        process,
        stdio,
        cgroup,
        seccomp,
    } = exec;
    let process_setup = ProcessSetup::read(process, spec, seccomp)?;
    let (reports, barrier, reporter) = open_channel()?;
    let into = cgroup.dir();
    let mut joiner = Some(ExecProcess {
        target,
        spec,
        process_setup,
        stdio: stdio_setup(stdio)?,
        reporter,
        cgroup,
        starts_in_cgroup: into.is_some(),
    });
    let mut begin = |into: Option<BorrowedFd<'_>>| {
        // `take` runs in the child, so that a second attempt of the parent still has it.
        clone::fork(0, into, || joiner.take().map_or(1, ExecProcess::run))
    };
    let mut fork = || match begin(into) {
        // EBUSY: the container enabled controllers for cgroups below its own, so the kernel allows
        // no processes in it (no internal processes, cgroups(7)).
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
            let leaf = cgroup.dir_of(target)?;
            begin(Some(leaf.as_fd()))
        }
        begun => begun,
    };
    let child = if spec.linux.namespace(NamespaceKind::Pid).is_some() {
        in_pid_namespace(target, fork)?
    } else {
        fork().map_err(|error| LaunchError::step("cannot fork a process", error))?
    };
    Ok(Launching {
        pid: child.pid,
        pidfd: child.pidfd,
        prepares: false,
        reports,
        barrier,
    })
}

/// A process that joins a container.
struct ExecProcess<'a> {
    target: BorrowedFd<'a>,
    spec: &'a Spec,
    process_setup: ProcessSetup<'a>,
    stdio: StdioSetup,
    reporter: ChildReporter,
    cgroup: &'a CgroupTarget,
    /// It was forked into its version 2 cgroup (CLONE_INTO_CGROUP).
    starts_in_cgroup: bool,
}

impl ExecProcess<'_> {
    fn run(self) -> i32 {
        match self.join() {
            Ok((labels, console)) => {
                let Self {
                    process_setup,
                    reporter,
                    ..
                } = self;
                process_setup.run(&reporter, &labels, console)
            }
            Err(failure) => {
                self.reporter.failed(&failure.0);
                1
            }
        }
    }

    fn join(&self) -> Result<(Vec<ExecLabel>, Option<OwnedFd>), StepError> {
        process::reset_signals();
        let hidden = || set_dumpable_behavior(DumpableBehavior::NotDumpable);
        hidden().step(|| "cannot protect the process from being traced")?;
        let joined = match self.starts_in_cgroup {
            true => self.cgroup.join_rest(),
            false => self.cgroup.join_self(),
        };
        joined.step(|| "cannot join the container's cgroup")?;
        let mut kept = vec![self.target];
        kept.extend(self.reporter.descriptors());
        if let StdioSetup::Files(files) = &self.stdio {
            kept.extend(files.descriptors());
        }
        process::close_all_but(&kept).step(|| "cannot close inherited descriptors")?;
        setsid().step(|| "cannot create a session")?;
        self.process_setup.prepare(&self.reporter)?;
        // Before the container's mount namespace is joined: it may have anything on `/proc`.
        let labels = self.process_setup.labels()?;
        let linux = &self.spec.linux;
        if let StdioSetup::Files(files) = &self.stdio {
            let ids = HostIds::new(&linux.uid_mappings, &linux.gid_mappings);
            files.give_to(ids.uid(self.process_setup.uid()));
        }
        self.process_setup.limit(&self.reporter)?;
        move_into_thread_name_spaces(self.target, self.namespaces()).map_err(|error| {
            let reason = match error {
                Errno::SRCH => "the container is not running".to_owned(),
                error => reason(&error.into()),
            };
            StepError(format!("cannot join the container: {reason}"))
        })?;
        if linux.namespace(NamespaceKind::User).is_some() {
            become_root_inside()?;
        }
        let root = RootDir::current().step(|| "cannot open the container's root")?;
        let console = match &self.stdio {
            StdioSetup::Files(files) => {
                files.install()?;
                None
            }
            StdioSetup::Console(size) => {
                let terminal = Terminal::open(&root, *size, self.process_setup.uid())?;
                terminal.install()?;
                Some(terminal.master)
            }
        };
        Ok((labels, console))
    }

    /// The namespaces that the container does not share with the host, apart from the PID
    /// namespace, which the fork joins.
    fn namespaces(&self) -> ThreadNameSpaceType {
        let kinds = self.spec.linux.namespaces.iter().map(|one| match one.kind {
            NamespaceKind::Pid | NamespaceKind::Time => ThreadNameSpaceType::empty(),
            NamespaceKind::Network => ThreadNameSpaceType::NETWORK,
            NamespaceKind::Mount => ThreadNameSpaceType::MOUNT,
            NamespaceKind::Ipc => ThreadNameSpaceType::INTER_PROCESS_COMMUNICATION,
            NamespaceKind::Uts => ThreadNameSpaceType::HOST_NAME_AND_NIS_DOMAIN_NAME,
            NamespaceKind::User => ThreadNameSpaceType::USER,
            NamespaceKind::Cgroup => ThreadNameSpaceType::CONTROL_GROUP,
        });
        kinds.fold(ThreadNameSpaceType::empty(), |all, one| all | one)
    }
}
