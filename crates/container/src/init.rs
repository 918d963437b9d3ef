//! What a container's init does from its first instruction to its program.
//!
//! 1. On the host ([`host`]): it joins its cgroup and the pod's namespaces, and opens everything of
//!    the host that the container will see, as mounts that are nowhere yet.
//! 2. It enters a mount namespace of its own and turns the root file system into its root. From
//!    then on nothing of the host can be reached by any path ([`root`]).
//! 3. Inside it attaches the mounts ([`mounts`]), hides what must not be seen ([`hidden`]) and
//!    becomes the container's process ([`crate::actor`]).
//!
//! With a user namespace, step 1 is done by a process of the host's root, which then joins the user
//! namespace and forks the init as its sibling.

mod cgroups;
mod hidden;
mod host;
mod layers;
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
    actor::Actor,
    in_root::Root,
    plan::{PidPlan, Plan},
    proc::ExecLabel,
    report::Reporter,
    standard::{Files, Terminal},
    step::{Failure, Step},
    sys::{clone, process},
};

pub(crate) use host::Gathered;
pub(crate) use root::enter_mount_namespace;

/// Standard input, output and error of a process that is being started.
#[derive(Debug)]
pub(crate) enum Standard {
    /// Descriptors that are there.
    Files(Files),
    /// A terminal that is to be made.
    Console(Console),
}

/// Everything a process on its way needs.
#[derive(Debug)]
pub(crate) struct Init<'a> {
    pub(crate) plan: Plan<'a>,
    pub(crate) actor: Actor<'a>,
    pub(crate) standard: Standard,
    pub(crate) reporter: Reporter,
    /// Joined first, unless the process was started in it.
    pub(crate) cgroup: &'a CgroupTarget,
    /// Whether it begins in the unified hierarchy's cgroup.
    pub(crate) begins_inside: bool,
}

impl Init<'_> {
    /// The whole life of the init. Returns, with an exit code, only if it failed.
    pub(crate) fn run(self) -> i32 {
        let gathered = self.start().and_then(|()| {
            let gathered = Gathered::gather(&self)?;
            self.enter_own_namespaces()?;
            Ok(gathered)
        });
        match gathered {
            Ok(gathered) => self.set_up_and_run(gathered),
            Err(failure) => {
                self.reporter.failed(&failure.0);
                1
            }
        }
    }

    /// The life of the process that prepares everything for an init in a user namespace, forks it, and
    /// hands it over.
    pub(crate) fn run_before_user_namespace(self) -> i32 {
        let prepared = self.start().and_then(|()| {
            let mut gathered = Gathered::gather(&self)?;
            // The overlay is mounted by the host's root, in passing through a namespace of its own.
            enter_mount_namespace(UnshareFlags::NEWNS)?;
            gathered.mount_images(&self.plan)?;
            self.actor.limit(&self.reporter)?;
            self.enter_user_namespace()?;
            Ok(gathered)
        });
        let gathered = match prepared {
            Ok(gathered) => gathered,
            Err(failure) => {
                self.reporter.failed(&failure.0);
                return 1;
            }
        };
        let mut flags = libc::CLONE_PARENT;
        match &self.plan.pid {
            PidPlan::Same => {}
            PidPlan::New => flags |= libc::CLONE_NEWPID,
            PidPlan::Join(_) => {}
        }
        let own = self.plan.own;
        let reporter = match self.reporter.twin() {
            Ok(twin) => twin,
            Err(error) => {
                self.reporter.failed(&error.to_string());
                return 1;
            }
        };
        let init = clone::fork(flags, None, || {
            let entered = become_root_inside().and_then(|()| enter_mount_namespace(own));
            match entered {
                Ok(()) => self.set_up_and_run(gathered),
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
                handed.step(|| "cannot hand the container's init over")
            });
        if let Err(failure) = handed {
            reporter.failed(&failure.0);
            return 1;
        }
        0
    }

    /// What every process does first.
    fn start(&self) -> Result<(), Failure> {
        process::reset_signals();
        // Processes that are in the container already must not be able to trace this one.
        set_dumpable_behavior(DumpableBehavior::NotDumpable)
            .step(|| "cannot protect the init from being traced")?;
        let joined = match self.begins_inside {
            true => self.cgroup.join_rest(),
            false => self.cgroup.join_self(),
        };
        joined.step(|| "cannot join the container's cgroup")?;
        let mut kept = self.reporter.descriptors().to_vec();
        if let Standard::Files(files) = &self.standard {
            kept.extend(files.descriptors());
        }
        kept.extend(self.plan.joins.iter().map(|(_, fd)| fd.as_fd()));
        kept.extend(self.plan.user.as_ref().map(AsFd::as_fd));
        kept.extend(self.plan.dev.as_ref().map(AsFd::as_fd));
        if let PidPlan::Join(fd) = &self.plan.pid {
            kept.push(fd.as_fd());
        }
        process::close_all_but(&kept).step(|| "cannot close inherited descriptors")?;
        setsid().step(|| "cannot make a session")?;
        Ok(())
    }

    fn enter_own_namespaces(&self) -> Result<(), Failure> {
        enter_mount_namespace(self.plan.own)
    }

    fn enter_user_namespace(&self) -> Result<(), Failure> {
        if let PidPlan::Join(pid) = &self.plan.pid {
            move_into_link_name_space(pid.as_fd(), Some(LinkNameSpaceType::ProcessID))
                .step(|| "cannot join the process ID namespace")?;
        }
        let Some(user) = &self.plan.user else {
            return Ok(());
        };
        move_into_link_name_space(user.as_fd(), Some(LinkNameSpaceType::User))
            .step(|| "cannot join the pod's user namespace")
    }

    fn set_up_and_run(self, gathered: Gathered) -> i32 {
        match self.set_up(gathered) {
            Ok((labels, console)) => {
                let Self {
                    actor, reporter, ..
                } = self;
                let console = console.map(|terminal| terminal.master);
                actor.run(&reporter, &labels, console)
            }
            Err(failure) => {
                self.reporter.failed(&failure.0);
                1
            }
        }
    }

    /// From a mount namespace of its own to the container as its program will see it.
    fn set_up(&self, gathered: Gathered) -> Result<(Vec<ExecLabel>, Option<Terminal>), Failure> {
        let plan = &self.plan;
        let labels = self.actor.labels()?;
        let mut gathered = gathered;
        if gathered.root.is_none() {
            gathered.mount_images(plan)?;
        }
        gathered.mount_filesystems(plan)?;
        let Gathered {
            root: new_root,
            mounts,
            null,
        } = gathered;
        let new_root = new_root.ok_or_else(|| Failure::new("the root file system is missing"))?;
        root::enter(&new_root)?;
        drop(new_root);
        let root = Root::current().step(|| "cannot open the container's root")?;
        mounts::attach_all(plan, mounts, &root)?;
        mounts::make_devices(plan, &root)?;
        let terminal = match &self.standard {
            Standard::Files(files) => {
                files.install()?;
                None
            }
            Standard::Console(size) => {
                let terminal = Terminal::open(&root, *size, self.actor.uid())?;
                terminal.install()?;
                mounts::attach_console(&terminal, &root)?;
                Some(terminal)
            }
        };
        hidden::hide(plan, null, &root)?;
        let cwd = &plan.spec.process.cwd;
        // A folder that can't be made is told when the process goes there.
        let _ = root.make_dir(cwd, rustix::fs::Mode::from_raw_mode(0o755));
        mounts::finish_root(plan, &root)?;
        if plan.user.is_none() {
            self.actor.limit(&self.reporter)?;
        }
        Ok((labels, terminal))
    }
}

/// Takes the IDs of root in the user namespace that was joined.
pub(crate) fn become_root_inside() -> Result<(), Failure> {
    use rustix::thread::{Gid, Uid, set_thread_groups, set_thread_res_gid, set_thread_res_uid};
    let what = || "cannot become root in the pod's user namespace";
    set_thread_groups(&[]).step(what)?;
    set_thread_res_gid(Gid::ROOT, Gid::ROOT, Gid::ROOT).step(what)?;
    set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT).step(what)?;
    // A change of the user makes a process dumpable as the kernel's setting has it.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).step(what)
}
