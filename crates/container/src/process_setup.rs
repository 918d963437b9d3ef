//! Applies a process's user, capabilities, limits and seccomp filter before it executes its
//! program. The same for a container's init and for an exec.

use std::os::fd::OwnedFd;

use rubelet_oci::{Process, Spec};
use rustix::{
    fs::Mode,
    io::Errno,
    process::umask,
    thread::{
        Gid, Uid, set_keep_capabilities, set_no_new_privs, set_thread_groups, set_thread_res_gid,
        set_thread_res_uid,
    },
};

use crate::{
    capabilities::{self, ProcessCapabilities},
    proc::{self, ExecLabel},
    program::Program,
    report::ChildReporter,
    rlimits::{self, ResourceLimit},
    step::{Step, StepError, reason},
    sys::{keyring, process, seccomp},
};

/// `umask` of a process without one in the specification.
const DEFAULT_UMASK: u32 = 0o022;

/// A process of a specification, parsed and checked.
#[derive(Debug)]
pub(crate) struct ProcessSetup<'a> {
    process: &'a Process,
    program: Program<'a>,
    capabilities: Option<ProcessCapabilities>,
    limits: Vec<ResourceLimit<'a>>,
    filter: Option<SeccompFilter<'a>>,
}

/// A compiled seccomp filter.
#[derive(Debug, Clone, Copy)]
struct SeccompFilter<'a> {
    program: &'a [u8],
    flags: u64,
}

impl<'a> ProcessSetup<'a> {
    /// Parses a process. `filter` is the compiled seccomp filter; its flags are in `spec`.
    pub(crate) fn read(
        process: &'a Process,
        spec: &Spec,
        filter: Option<&'a [u8]>,
    ) -> Result<Self, StepError> {
        let capabilities = process
            .capabilities
            .as_ref()
            .map(ProcessCapabilities::read)
            .transpose()?;
        let names = spec.linux.seccomp.iter().flat_map(|one| &one.flags);
        let mut flags = 0;
        for name in names {
            flags |= match name.as_str() {
                "SECCOMP_FILTER_FLAG_TSYNC" => libc::SECCOMP_FILTER_FLAG_TSYNC,
                "SECCOMP_FILTER_FLAG_LOG" => libc::SECCOMP_FILTER_FLAG_LOG,
                "SECCOMP_FILTER_FLAG_SPEC_ALLOW" => libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW,
                other => return Err(StepError(format!("unknown seccomp flag {other:?}"))),
            };
        }
        Ok(Self {
            process,
            program: Program::read(process)?,
            capabilities,
            limits: rlimits::read(&process.rlimits)?,
            filter: filter.map(|program| SeccompFilter { program, flags }),
        })
    }

    /// Steps that need the host's `/proc` and rights outside of a user namespace.
    pub(crate) fn prepare(&self, reporter: &ChildReporter) -> Result<(), StepError> {
        let wanted = self.process.oom_score_adj.unwrap_or(0);
        match proc::write("thread-self/oom_score_adj", &wanted.to_string()) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                reporter.warning(&format!(
                    "cannot set oom_score_adj to {wanted}: {}",
                    reason(&error)
                ));
                Ok(())
            }
            Err(error) => Err(error).step(|| format!("cannot set oom_score_adj to {wanted}")),
        }
    }

    /// Opens the files that set the security labels of the program. Needs the host's `/proc`, and
    /// must run in the process that executes the program.
    pub(crate) fn labels(&self) -> Result<Vec<ExecLabel>, StepError> {
        ExecLabel::open(&self.process.apparmor_profile, &self.process.selinux_label)
    }

    /// Sets resource limits. Must run before a user namespace is joined, where raising a hard limit
    /// is not permitted.
    pub(crate) fn limit(&self, reporter: &ChildReporter) -> Result<(), StepError> {
        for warning in rlimits::apply(&self.limits)? {
            reporter.warning(&warning);
        }
        Ok(())
    }

    /// The user ID in the user namespace.
    pub(crate) fn uid(&self) -> u32 {
        self.process.user.uid
    }

    /// Applies everything, reports that it is created, waits for the barrier and executes the
    /// program. Returns, with an exit code, only on failure.
    pub(crate) fn run(
        mut self,
        reporter: &ChildReporter,
        labels: &[ExecLabel],
        console: Option<OwnedFd>,
    ) -> i32 {
        let found = self.become_user(reporter, labels);
        let told = found.and_then(|program| {
            reporter
                .created(console.as_ref())
                .step(|| "cannot report that the container is created")?;
            Ok(program)
        });
        drop(console);
        let program = match told {
            Ok(program) => program,
            Err(failure) => {
                reporter.failed(&failure.0);
                return 1;
            }
        };
        if !reporter.wait_at_barrier() {
            return 1;
        }
        // As with runc, a missing program fails the start, not the creation.
        let program = match program {
            Ok(program) => program,
            Err(failure) => {
                reporter.start_failed(&failure.0);
                return 1;
            }
        };
        if let Err(failure) = self.filter_calls() {
            reporter.start_failed(&failure.0);
            return 1;
        }
        let error = process::execute(&program, self.program.args(), self.program.env());
        reporter.start_failed(&format!(
            "unable to start container process: exec {}: {}",
            program.to_string_lossy(),
            reason(&error)
        ));
        1
    }

    fn become_user(
        &mut self,
        reporter: &ChildReporter,
        labels: &[ExecLabel],
    ) -> Result<Result<std::ffi::CString, StepError>, StepError> {
        // Not closed yet: the socket for reports and the pipe of the barrier are needed until
        // execve(2).
        process::close_all_on_exec().step(|| "cannot set close-on-exec on the file descriptors")?;
        keyring::new_session().step(|| "cannot create a session keyring")?;
        for label in labels {
            label.apply()?;
        }
        if let Some(sets) = &mut self.capabilities {
            let missing = sets.bound()?;
            if !missing.is_empty() {
                reporter.warning(&format!(
                    "the runtime does not have the capabilities {} and cannot grant them",
                    missing.join(", ")
                ));
            }
        }
        // First as root: as with runc, the working directory may be accessible to root only.
        let entered = self.program.enter_directory();
        self.change_user()?;
        if entered.is_err() {
            self.program.enter_directory()?;
        }
        // As the final user, but before the capabilities are dropped.
        let program = self.program.find();
        if self.process.no_new_privileges {
            set_no_new_privs(true).step(|| "cannot set no_new_privs")?;
            self.final_capabilities()?;
        } else if self.filter.is_none() {
            self.final_capabilities()?;
        } else {
            // Without no_new_privs, seccomp(2) needs CAP_SYS_ADMIN, so the filter is loaded while
            // all capabilities are still there.
            capabilities::raise_permitted()?;
        }
        Ok(program)
    }

    fn change_user(&self) -> Result<(), StepError> {
        let user = &self.process.user;
        umask(Mode::from_raw_mode(user.umask.unwrap_or(DEFAULT_UMASK)));
        // Otherwise setuid(2) to another user clears the permitted set, from which the final sets
        // are taken.
        set_keep_capabilities(true).step(|| "cannot keep capabilities")?;
        let groups: Vec<Gid> = user
            .additional_gids
            .iter()
            .map(|&id| Gid::from_raw(id))
            .collect();
        let mapped = |error: &Errno| match *error {
            Errno::INVAL => " (it is not mapped in the pod's user namespace)",
            _ => "",
        };
        let failed = |what: String, error: Errno| {
            let hint = mapped(&error);
            StepError(format!("{what}: {}{hint}", reason(&error.into())))
        };
        // Groups before the user: the right to change them ends with root.
        set_thread_groups(&groups).map_err(|error| {
            failed(
                format!(
                    "cannot set the supplemental groups {:?}",
                    user.additional_gids
                ),
                error,
            )
        })?;
        let gid = Gid::from_raw(user.gid);
        set_thread_res_gid(gid, gid, gid)
            .map_err(|error| failed(format!("cannot become the group {}", user.gid), error))?;
        let uid = Uid::from_raw(user.uid);
        set_thread_res_uid(uid, uid, uid)
            .map_err(|error| failed(format!("cannot become the user {}", user.uid), error))?;
        set_keep_capabilities(false).step(|| "cannot clear keep_capabilities")
    }

    fn final_capabilities(&self) -> Result<(), StepError> {
        match &self.capabilities {
            Some(sets) => sets.apply(),
            None => Ok(()),
        }
    }

    fn filter_calls(&self) -> Result<(), StepError> {
        let Some(filter) = self.filter else {
            return Ok(());
        };
        seccomp::load(filter.program, filter.flags)
            .step(|| "cannot filter system calls (seccomp)")?;
        if self.process.no_new_privileges {
            return Ok(());
        }
        // From here on the filter applies to this process, too.
        self.final_capabilities()
    }
}
