//! The namespaces that the containers of a pod share.

use std::{
    collections::BTreeMap,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

pub use rubelet_oci::IdMappings;
use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
    pipe::{PipeFlags, pipe_with},
    process::{DumpableBehavior, Signal, pidfd_send_signal, set_dumpable_behavior, setsid},
    thread::{LinkNameSpaceType, move_into_link_name_space},
};

use crate::{
    LaunchError,
    ids::kernel_text,
    proc,
    report::{channel, read_failure},
    step::{Step, StepError},
    sys::{
        clone::{self, Child},
        loopback, process,
    },
};

/// The namespaces of a pod to create; the others are the host's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamespaceOptions {
    /// A network namespace, with its loopback interface up.
    pub net: bool,
    /// An IPC namespace.
    pub ipc: bool,
    /// A UTS namespace.
    pub uts: bool,
    /// A user namespace with these IDs.
    pub user: Option<IdMappings>,
    /// A PID namespace that all containers share, with a pause process as its init.
    pub pid: bool,
    /// Host name; needs `uts`.
    pub hostname: String,
    /// Kernel parameters by name (`net.ipv4.ip_forward`, or with slashes); each must belong to one
    /// of these namespaces.
    pub sysctls: BTreeMap<String, String>,
}

/// The init of a shared PID namespace. It only reaps orphans.
#[derive(Debug)]
pub struct PauseProcess {
    /// Its PID; it is a child of the caller.
    pub pid: i32,
    /// Its pidfd.
    pub pidfd: OwnedFd,
}

/// Open namespaces of a pod. The kernel keeps each while a descriptor or a process refers to it.
#[derive(Debug, Default)]
pub struct PodNamespaces {
    /// Network.
    pub net: Option<OwnedFd>,
    /// IPC.
    pub ipc: Option<OwnedFd>,
    /// Host name.
    pub uts: Option<OwnedFd>,
    /// User and group IDs.
    pub user: Option<OwnedFd>,
    /// Process IDs.
    pub pid: Option<OwnedFd>,
    /// The process that keeps the PID namespace alive.
    pub pause: Option<PauseProcess>,
}

/// Namespaces that a container joins, by kind. A kind that the container's specification doesn't
/// list at all remains the host's, whatever is set here; a kind listed with a path is joined
/// through the descriptor here, or, without one, through that path.
#[derive(Debug, Clone, Copy, Default)]
pub struct JoinedNamespaces<'a> {
    /// Network.
    pub net: Option<BorrowedFd<'a>>,
    /// IPC.
    pub ipc: Option<BorrowedFd<'a>>,
    /// Host name.
    pub uts: Option<BorrowedFd<'a>>,
    /// User and group IDs.
    pub user: Option<BorrowedFd<'a>>,
    /// The PID namespace: of the pod, or of the target container.
    pub pid: Option<BorrowedFd<'a>>,
}

impl PodNamespaces {
    /// All of them, for joining.
    #[must_use]
    pub fn joined(&self) -> JoinedNamespaces<'_> {
        JoinedNamespaces {
            net: self.net.as_ref().map(AsFd::as_fd),
            ipc: self.ipc.as_ref().map(AsFd::as_fd),
            uts: self.uts.as_ref().map(AsFd::as_fd),
            user: self.user.as_ref().map(AsFd::as_fd),
            pid: self.pid.as_ref().map(AsFd::as_fd),
        }
    }
}

/// Creates the namespaces of a pod in short-lived children. Blocks for about a millisecond, or ten
/// with a network namespace.
///
/// # Errors
/// The kernel refuses a namespace, the host name or a kernel parameter.
pub fn make_namespaces(wanted: &NamespaceOptions) -> Result<PodNamespaces, LaunchError> {
    wanted.check()?;
    let mut flags = 0;
    for (is_wanted, flag) in [
        (wanted.net, libc::CLONE_NEWNET),
        (wanted.ipc, libc::CLONE_NEWIPC),
        (wanted.uts, libc::CLONE_NEWUTS),
        (wanted.pid, libc::CLONE_NEWPID),
        (wanted.user.is_some(), libc::CLONE_NEWUSER),
    ] {
        if is_wanted {
            flags |= flag;
        }
    }
    if flags == 0 {
        return Ok(PodNamespaces::default());
    }
    // The child waits in the new namespaces until the other end of the pipe closes; then it exits,
    // or becomes the pause process.
    let (hold, release) = pipe_with(PipeFlags::CLOEXEC)
        .map_err(|error| LaunchError::step("cannot create a pipe", error))?;
    let is_pause = wanted.pid;
    let child = clone::fork(flags, None, || hold_namespaces(&hold, is_pause))
        .map_err(|error| LaunchError::step("cannot create the pod's namespaces", error))?;
    drop(hold);
    let made = open_namespaces(wanted, &child);
    let pause = is_pause && made.is_ok();
    if pause {
        // A byte makes it the pause process.
        let _ = rustix::io::write(&release, b"p");
    }
    drop(release);
    if !pause {
        if is_pause {
            let _ = pidfd_send_signal(&child.pidfd, Signal::KILL);
        }
        clone::wait(&child).map_err(|error| LaunchError::step("cannot wait for a child", error))?;
        return made;
    }
    Ok(PodNamespaces {
        pause: Some(PauseProcess {
            pid: child.pid,
            pidfd: child.pidfd,
        }),
        ..made?
    })
}

/// Creates a user namespace for ID-mapped mounts.
pub(crate) fn user_namespace(mappings: &IdMappings) -> Result<OwnedFd, LaunchError> {
    let wanted = NamespaceOptions {
        user: Some(mappings.clone()),
        ..NamespaceOptions::default()
    };
    let made = make_namespaces(&wanted)?;
    made.user
        .ok_or_else(|| LaunchError::Refused("the user namespace is missing".to_owned()))
}

impl NamespaceOptions {
    fn check(&self) -> Result<(), LaunchError> {
        if !self.hostname.is_empty() && !self.uts {
            return Err(LaunchError::Refused(format!(
                "the host name {:?} cannot be set in the host's own UTS namespace",
                self.hostname
            )));
        }
        for name in self.sysctls.keys() {
            let dotted = name.replace('/', ".");
            let has = if dotted.starts_with("net.") {
                self.net
            } else if dotted.starts_with("kernel.domainname")
                || dotted.starts_with("kernel.hostname")
            {
                self.uts
            } else {
                // Parameters of IPC namespaces: kernel.msg*, kernel.sem, kernel.shm*, fs.mqueue.*.
                self.ipc
                    && (["kernel.msg", "kernel.shm", "fs.mqueue."]
                        .iter()
                        .any(|prefix| dotted.starts_with(prefix))
                        || dotted == "kernel.sem")
            };
            if !has {
                return Err(LaunchError::Refused(format!(
                    "the kernel parameter {name} does not belong to one of the pod's own namespaces"
                )));
            }
        }
        Ok(())
    }
}

fn hold_namespaces(hold: &OwnedFd, is_pause: bool) -> i32 {
    process::reset_signals();
    if is_pause {
        // The kernel then reaps the orphans that this process adopts as init of the PID namespace.
        process::ignore_children();
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
        let _ = rustix::thread::set_name(c"pause");
    }
    // With its own copy of the writing end open, the read below would never end.
    if process::close_all_but(&[hold.as_fd()]).is_err() {
        return 1;
    }
    let mut byte = [0];
    let told = loop {
        match rustix::io::read(hold, &mut byte) {
            Err(Errno::INTR) => {}
            other => break other,
        }
    };
    if !is_pause || told != Ok(1) {
        return 0;
    }
    let _ = setsid();
    // Keep nothing of the shim open, not even a working directory.
    let _ = rustix::process::chdir("/");
    if let Ok(null) = rustix::fs::open("/dev/null", OFlags::RDWR, Mode::empty()) {
        let _ = rustix::stdio::dup2_stdin(&null);
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stderr(&null);
    }
    if process::close_all_but(&[]).is_err() {
        return 1;
    }
    process::pause_forever()
}

/// Opens the namespaces of the child and configures them.
fn open_namespaces(wanted: &NamespaceOptions, child: &Child) -> Result<PodNamespaces, LaunchError> {
    if let Some(mappings) = &wanted.user {
        for (file, ids) in [("gid_map", &mappings.gids), ("uid_map", &mappings.uids)] {
            proc::write(format!("{}/{file}", child.pid), &kernel_text(ids)).map_err(|error| {
                LaunchError::step(
                    format!("cannot map the IDs of the user namespace ({file})"),
                    error,
                )
            })?;
        }
    }
    let open = |is_wanted: bool, name: &str| {
        if !is_wanted {
            return Ok(None);
        }
        let path = format!("/proc/{}/ns/{name}", child.pid);
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        match rustix::fs::open(&path, flags, Mode::empty()) {
            Ok(fd) => Ok(Some(fd)),
            Err(error) => {
                let step = format!("cannot open the pod's {name} namespace");
                Err(LaunchError::step(step, error))
            }
        }
    };
    let made = PodNamespaces {
        net: open(wanted.net, "net")?,
        ipc: open(wanted.ipc, "ipc")?,
        uts: open(wanted.uts, "uts")?,
        user: open(wanted.user.is_some(), "user")?,
        pid: open(wanted.pid, "pid")?,
        pause: None,
    };
    if wanted.net || wanted.uts || !wanted.sysctls.is_empty() {
        configure(wanted, &made)?;
    }
    Ok(made)
}

/// Configures the namespaces in a child that joins them as the host's root: in a user namespace,
/// some kernels let only that write kernel parameters.
fn configure(wanted: &NamespaceOptions, made: &PodNamespaces) -> Result<(), LaunchError> {
    let (mut reports, barrier, reporter) =
        channel().map_err(|error| LaunchError::step("cannot create a socket", error))?;
    let child = clone::fork(0, None, || match configure_here(wanted, made) {
        Ok(()) => 0,
        Err(failure) => {
            reporter.failed(&failure.0);
            1
        }
    })
    .map_err(|error| LaunchError::step("cannot fork", error))?;
    drop((barrier, reporter));
    let worked = clone::wait(&child);
    let worked = worked.map_err(|error| LaunchError::step("cannot wait for a child", error))?;
    match read_failure(&mut reports) {
        Some(text) => Err(LaunchError::Refused(text)),
        None if worked => Ok(()),
        None => Err(LaunchError::Refused(
            "the process that configures the pod's namespaces was killed".to_owned(),
        )),
    }
}

fn configure_here(wanted: &NamespaceOptions, made: &PodNamespaces) -> Result<(), StepError> {
    process::reset_signals();
    let joins = [
        (&made.net, LinkNameSpaceType::Network),
        (&made.ipc, LinkNameSpaceType::InterProcessCommunication),
        (&made.uts, LinkNameSpaceType::HostNameAndNISDomainName),
    ];
    for (fd, kind) in joins {
        if let Some(fd) = fd {
            move_into_link_name_space(fd.as_fd(), Some(kind))
                .step(|| format!("cannot join the pod's namespace ({kind:?})"))?;
        }
    }
    if wanted.net {
        loopback::up().step(|| "cannot bring up the loopback interface of the pod")?;
    }
    if !wanted.hostname.is_empty() {
        rustix::system::sethostname(wanted.hostname.as_bytes())
            .step(|| format!("cannot set the host name {:?}", wanted.hostname))?;
    }
    for (name, value) in &wanted.sysctls {
        proc::set_parameter(name, value)?;
    }
    Ok(())
}
