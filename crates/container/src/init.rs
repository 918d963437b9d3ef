//! A container's init, from the fork to the execution of its program.
//!
//! 1. On the host ([`host`]): it joins its cgroup and the pod's namespaces, and opens everything of
//!    the host that the container gets, as detached mounts.
//! 2. It enters a new mount namespace and makes the root file system its root with pivot_root(2).
//!    From then on no path leads to the host ([`root`]).
//! 3. Inside, it attaches the mounts ([`mounts`]), masks paths ([`masked_paths`]) and becomes the
//!    container's process ([`crate::process_setup`]).
//!
//! With a user namespace, a process with the host's root does step 1, then joins the user namespace
//! and forks the init as its sibling (CLONE_PARENT), so that the init is a child of the shim.

mod cgroups;
mod host;
mod layers;
mod masked_paths;
mod mounts;
mod root;

use std::os::fd::AsFd;

use rubelet_host::cgroup::CgroupTarget;
use rustix::{
    process::{DumpableBehavior, set_dumpable_behavior, setsid},
    thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space},
};

use crate::{
    Console,
    in_root::RootDir,
    plan::{ContainerPlan, PidPlan},
    proc::ExecLabel,
    process_setup::ProcessSetup,
    report::ChildReporter,
    stdio::{StdioFiles, Terminal},
    step::{Step, StepError},
    sys::{clone, process},
};

pub(crate) use host::HostHandles;
pub(crate) use root::enter_mount_namespace;

/// Standard input, output and error of a process.
#[derive(Debug)]
pub(crate) enum StdioSetup {
    /// Open descriptors.
    Files(StdioFiles),
    /// A terminal to create.
    Console(Console),
}

/// Everything the init needs.
#[derive(Debug)]
pub(crate) struct Init<'a> {
    pub(crate) plan: ContainerPlan<'a>,
    pub(crate) process_setup: ProcessSetup<'a>,
    pub(crate) stdio: StdioSetup,
    pub(crate) reporter: ChildReporter,
    /// The cgroup, joined first, unless the process was forked into it.
    pub(crate) cgroup: &'a CgroupTarget,
    /// It was forked into its version 2 cgroup (CLONE_INTO_CGROUP).
    pub(crate) starts_in_cgroup: bool,
}

impl Init<'_> {
    /// Runs the init. Returns, with an exit code, only on failure.
    pub(crate) fn run(self) -> i32 {
        let handles = self.start().and_then(|()| {
            let handles = HostHandles::gather(&self)?;
            self.enter_own_namespaces()?;
            Ok(handles)
        });
        match handles {
            Ok(handles) => self.set_up_and_run(handles),
            Err(failure) => {
                self.reporter.failed(&failure.0);
                1
            }
        }
    }

    /// Runs the process that prepares an init in a user namespace, forks it, and reports it.
    pub(crate) fn run_before_user_namespace(self) -> i32 {
        let prepared = self.start().and_then(|()| {
            let mut handles = HostHandles::gather(&self)?;
            // The host's root mounts the overlay, in a temporary mount namespace: root
            // of a user namespace can't ID-map the layers.
            enter_mount_namespace(UnshareFlags::NEWNS)?;
            handles.mount_images(&self.plan)?;
            // Before the user namespace, in which a hard limit can't be raised.
            self.process_setup.limit(&self.reporter)?;
            self.enter_user_namespace()?;
            Ok(handles)
        });
        let handles = match prepared {
            Ok(handles) => handles,
            Err(failure) => {
                self.reporter.failed(&failure.0);
                return 1;
            }
        };
        // The shim reaps the init, so the init must be its child and not that of this process.
        let mut flags = libc::CLONE_PARENT;
        match &self.plan.pid {
            PidPlan::Same => {}
            PidPlan::New => flags |= libc::CLONE_NEWPID,
            PidPlan::Join(_) => {}
        }
        let own = self.plan.own;
        let reporter = match self.reporter.try_clone() {
            Ok(reporter) => reporter,
            Err(error) => {
                self.reporter.failed(&error.to_string());
                return 1;
            }
        };
        let init = clone::fork(flags, None, || {
            let entered = become_root_inside().and_then(|()| enter_mount_namespace(own));
            match entered {
                Ok(()) => self.set_up_and_run(handles),
                Err(failure) => {
                    self.reporter.failed(&failure.0);
                    1
                }
            }
        });
        let handed = init
            .step(|| "cannot start the container's init")
            .and_then(|child| {
                let handed = reporter.init(child.pid, &child.pidfd);
                handed.step(|| "cannot report the container's init")
            });
        if let Err(failure) = handed {
            reporter.failed(&failure.0);
            return 1;
        }
        0
    }

    /// The first steps of every process.
    fn start(&self) -> Result<(), StepError> {
        process::reset_signals();
        // Processes that run in the container already, as with a shared PID namespace, must not be
        // able to trace this one while it has the host's rights (CVE-2016-9962).
        set_dumpable_behavior(DumpableBehavior::NotDumpable)
            .step(|| "cannot protect the init from being traced")?;
        let joined = match self.starts_in_cgroup {
            true => self.cgroup.join_rest(),
            false => self.cgroup.join_self(),
        };
        joined.step(|| "cannot join the container's cgroup")?;
        // A descriptor that leaked from the shim would lead to the host (CVE-2024-21626).
        let mut kept = self.reporter.descriptors().to_vec();
        if let StdioSetup::Files(files) = &self.stdio {
            kept.extend(files.descriptors());
        }
        kept.extend(self.plan.joins.iter().map(|(_, fd)| fd.as_fd()));
        kept.extend(self.plan.user.as_ref().map(AsFd::as_fd));
        kept.extend(self.plan.dev.as_ref().map(AsFd::as_fd));
        if let PidPlan::Join(fd) = &self.plan.pid {
            kept.push(fd.as_fd());
        }
        process::close_all_but(&kept).step(|| "cannot close inherited descriptors")?;
        // Without its own session it could push input into a terminal of the agent (TIOCSTI).
        setsid().step(|| "cannot create a session")?;
        Ok(())
    }

    fn enter_own_namespaces(&self) -> Result<(), StepError> {
        enter_mount_namespace(self.plan.own)
    }

    fn enter_user_namespace(&self) -> Result<(), StepError> {
        // Before the user namespace: setns(2) needs CAP_SYS_ADMIN in the user namespace that owns
        // the PID namespace, and that may be the host's.
        if let PidPlan::Join(pid) = &self.plan.pid {
            move_into_link_name_space(pid.as_fd(), Some(LinkNameSpaceType::ProcessID))
                .step(|| "cannot join the PID namespace")?;
        }
        let Some(user) = &self.plan.user else {
            return Ok(());
        };
        move_into_link_name_space(user.as_fd(), Some(LinkNameSpaceType::User))
            .step(|| "cannot join the pod's user namespace")
    }

    fn set_up_and_run(self, handles: HostHandles) -> i32 {
        match self.set_up(handles) {
            Ok((labels, console)) => {
                let Self {
                    process_setup,
                    reporter,
                    ..
                } = self;
                let console = console.map(|terminal| terminal.master);
                process_setup.run(&reporter, &labels, console)
            }
            Err(failure) => {
                self.reporter.failed(&failure.0);
                1
            }
        }
    }

    /// Sets the container up, in its new mount namespace.
    fn set_up(
        &self,
        handles: HostHandles,
    ) -> Result<(Vec<ExecLabel>, Option<Terminal>), StepError> {
        let plan = &self.plan;
        // Opened while `/proc` is the host's; written shortly before execve(2).
        let labels = self.process_setup.labels()?;
        let mut handles = handles;
        if handles.root.is_none() {
            handles.mount_images(plan)?;
        }
        handles.mount_filesystems(plan)?;
        let HostHandles {
            root: new_root,
            mounts,
            null,
        } = handles;
        let new_root = new_root.ok_or_else(|| StepError::new("the root file system is missing"))?;
        root::enter(&new_root)?;
        // From here on the host's mounts are gone, and paths of the container can be followed.
        drop(new_root);
        let root = RootDir::current().step(|| "cannot open the container's root")?;
        mounts::attach_all(plan, mounts, &root)?;
        mounts::make_devices(plan, &root)?;
        // After the mounts: a terminal is one of the container's own `/dev/pts`.
        let terminal = match &self.stdio {
            StdioSetup::Files(files) => {
                files.install()?;
                None
            }
            StdioSetup::Console(size) => {
                let terminal = Terminal::open(&root, *size, self.process_setup.uid())?;
                terminal.install()?;
                mounts::attach_console(&terminal, &root)?;
                Some(terminal)
            }
        };
        // After the mounts: one of them could cover a path that must be masked.
        masked_paths::mask_paths(plan, null, &root)?;
        let cwd = &plan.spec.process.cwd;
        // If mkdir fails, chdir reports it later.
        let _ = root.make_dir(cwd, rustix::fs::Mode::from_raw_mode(0o755));
        mounts::finish_root(plan, &root)?;
        if plan.user.is_none() {
            self.process_setup.limit(&self.reporter)?;
        }
        Ok((labels, terminal))
    }
}

/// Becomes root of the joined user namespace.
pub(crate) fn become_root_inside() -> Result<(), StepError> {
    use rustix::thread::{Gid, Uid, set_thread_groups, set_thread_res_gid, set_thread_res_uid};
    let what = || "cannot become root in the pod's user namespace";
    // The agent's supplementary groups would keep their rights on the files that mounts bring in.
    set_thread_groups(&[]).step(what)?;
    set_thread_res_gid(Gid::ROOT, Gid::ROOT, Gid::ROOT).step(what)?;
    set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT).step(what)?;
    // setuid(2) resets the dumpable flag to fs.suid_dumpable.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).step(what)
}
