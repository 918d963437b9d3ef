//! What a process becomes before it executes its program: its user, its rights, its limits. The
//! same for a container's init and for a process that joins a container.

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
    capabilities::{self, Sets},
    proc::{self, ExecLabel},
    program::Program,
    report::Reporter,
    rlimits::{self, Limit},
    step::{Failure, Step, reason},
    sys::{keyring, process, seccomp},
};

/// `umask` of a process that names none.
const DEFAULT_UMASK: u32 = 0o022;

/// A process, read and checked.
#[derive(Debug)]
pub(crate) struct Actor<'a> {
    process: &'a Process,
    program: Program<'a>,
    capabilities: Option<Sets>,
    limits: Vec<Limit<'a>>,
    filter: Option<Filter<'a>>,
}

/// A filter of system calls.
#[derive(Debug, Clone, Copy)]
struct Filter<'a> {
    program: &'a [u8],
    flags: u64,
}

impl<'a> Actor<'a> {
    /// Reads a process. `filter` is the compiled filter of system calls; its flags are in `spec`.
    pub(crate) fn read(
        process: &'a Process,
        spec: &Spec,
        filter: Option<&'a [u8]>,
    ) -> Result<Self, Failure> {
        let capabilities = process.capabilities.as_ref().map(Sets::read).transpose()?;
        let names = spec.linux.seccomp.iter().flat_map(|one| &one.flags);
        let mut flags = 0;
        for name in names {
            flags |= match name.as_str() {
                "SECCOMP_FILTER_FLAG_TSYNC" => libc::SECCOMP_FILTER_FLAG_TSYNC,
                "SECCOMP_FILTER_FLAG_LOG" => libc::SECCOMP_FILTER_FLAG_LOG,
                "SECCOMP_FILTER_FLAG_SPEC_ALLOW" => libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW,
                other => return Err(Failure(format!("unknown seccomp flag {other:?}"))),
            };
        }
        Ok(Self {
            process,
            program: Program::read(process)?,
            capabilities,
            limits: rlimits::read(&process.rlimits)?,
            filter: filter.map(|program| Filter { program, flags }),
        })
    }

    /// What needs rights that a user namespace doesn't give, and the host's `/proc`.
    pub(crate) fn prepare(&self, reporter: &Reporter) -> Result<(), Failure> {
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

    /// Opens what sets the security labels of the program; also with the host's `/proc`, and by the
    /// process itself that executes it.
    pub(crate) fn labels(&self) -> Result<Vec<ExecLabel>, Failure> {
        ExecLabel::open(&self.process.apparmor_profile, &self.process.selinux_label)
    }

    /// Limits of the host's own; to be set before a user namespace is joined.
    pub(crate) fn limit(&self, reporter: &Reporter) -> Result<(), Failure> {
        for warning in rlimits::apply(&self.limits)? {
            reporter.warning(&warning);
        }
        Ok(())
    }

    /// The user it becomes, in the numbers of its user namespace.
    pub(crate) fn uid(&self) -> u32 {
        self.process.user.uid
    }

    /// Becomes the process in everything but its program, tells so, waits for the gate and executes
    /// the program. Returns only when that failed; the result is an exit code.
    pub(crate) fn run(
        mut self,
        reporter: &Reporter,
        labels: &[ExecLabel],
        console: Option<OwnedFd>,
    ) -> i32 {
        let found = self.become_user(reporter, labels);
        let told = found.and_then(|program| {
            reporter
                .created(console.as_ref())
                .step(|| "cannot tell that the container is created")?;
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
        if !reporter.pass_gate() {
            return 1;
        }
        // A program that is missing is a failure of the start, as callers know it.
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
        reporter: &Reporter,
        labels: &[ExecLabel],
    ) -> Result<Result<std::ffi::CString, Failure>, Failure> {
        process::close_all_on_exec().step(|| "cannot have descriptors closed")?;
        keyring::new_session().step(|| "cannot leave the session keyring")?;
        for label in labels {
            label.apply()?;
        }
        if let Some(sets) = &mut self.capabilities {
            let missing = sets.bound()?;
            if !missing.is_empty() {
                reporter.warning(&format!(
                    "this machine has not got the capabilities {} and can't give them",
                    missing.join(", ")
                ));
            }
        }
        // As root first: the folder may be one that only root can enter, as other runtimes allow.
        let entered = self.program.enter_folder();
        self.change_user()?;
        if entered.is_err() {
            self.program.enter_folder()?;
        }
        // Looked for as the user it is now, before the last capabilities go.
        let program = self.program.find();
        if self.process.no_new_privileges {
            set_no_new_privs(true).step(|| "cannot set no_new_privs")?;
            self.final_capabilities()?;
        } else if self.filter.is_none() {
            self.final_capabilities()?;
        } else {
            // Without no_new_privs it takes CAP_SYS_ADMIN to filter system calls.
            capabilities::raise_permitted()?;
        }
        Ok(program)
    }

    fn change_user(&self) -> Result<(), Failure> {
        let user = &self.process.user;
        umask(Mode::from_raw_mode(user.umask.unwrap_or(DEFAULT_UMASK)));
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
            Failure(format!("{what}: {}{hint}", reason(&error.into())))
        };
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
        set_keep_capabilities(false).step(|| "cannot give up capabilities")
    }

    fn final_capabilities(&self) -> Result<(), Failure> {
        match &self.capabilities {
            Some(sets) => sets.apply(),
            None => Ok(()),
        }
    }

    fn filter_calls(&self) -> Result<(), Failure> {
        let Some(filter) = self.filter else {
            return Ok(());
        };
        seccomp::load(filter.program, filter.flags)
            .step(|| "cannot filter system calls (seccomp)")?;
        if self.process.no_new_privileges {
            return Ok(());
        }
        // From here on the filter counts for this process, too.
        self.final_capabilities()
    }
}
