//! Traces a process with ptrace(2).

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::libc;
use nix::sys::ptrace::{self, Event, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::{FAULT, Fault, Order, READY, Victim, calls};

/// The kernel's placeholder result while a call is entered.
const ENTERED: u64 = (-(libc::ENOSYS as i64)).cast_unsigned();
/// No system call.
const NO_CALL: u64 = u64::MAX;

/// Traces a process until it is gone with its children, or the fault was a kill. Writes a journal.
///
/// # Errors
/// When the process can't be traced.
pub fn trace(pid: u32, order: Order, journal: &mut dyn Write) -> Result<()> {
    let root = Pid::from_raw(i32::try_from(pid)?);
    let mut tracing = Tracing {
        root,
        order,
        journal,
        roles: BTreeMap::new(),
        failing: BTreeSet::new(),
        count: 0,
    };
    tracing.attach()?;
    tracing.follow()
}

/// The process that a traced thread belongs to.
#[derive(Debug, Clone, Copy)]
struct Role {
    process: Pid,
    who: Victim,
}

struct Tracing<'a> {
    root: Pid,
    order: Order,
    journal: &'a mut dyn Write,
    roles: BTreeMap<Pid, Role>,
    /// Threads whose call was skipped; its error is set at the exit of the call.
    failing: BTreeSet<Pid>,
    count: usize,
}

impl Tracing<'_> {
    fn attach(&mut self) -> Result<()> {
        let options = Options::PTRACE_O_TRACESYSGOOD
            | Options::PTRACE_O_TRACECLONE
            | Options::PTRACE_O_TRACEFORK
            | Options::PTRACE_O_TRACEVFORK
            | Options::PTRACE_O_TRACEEXEC;
        loop {
            let mut is_complete = true;
            for entry in std::fs::read_dir(format!("/proc/{}/task", self.root))? {
                let name = entry?.file_name();
                let tid = Pid::from_raw(name.to_string_lossy().parse()?);
                if self.roles.contains_key(&tid) {
                    continue;
                }
                // A thread that a traced thread started is already traced.
                match ptrace::seize(tid, options) {
                    Ok(()) => ptrace::interrupt(tid).context("cannot stop a thread")?,
                    Err(Errno::ESRCH | Errno::EPERM) => {}
                    Err(error) => return Err(error).context("cannot trace the process"),
                }
                let (process, who) = (self.root, Victim::Process);
                self.roles.insert(tid, Role { process, who });
                is_complete = false;
            }
            if is_complete {
                break;
            }
        }
        self.tell(READY)
    }

    fn tell(&mut self, line: &str) -> Result<()> {
        writeln!(self.journal, "{line}")?;
        Ok(self.journal.flush()?)
    }

    fn follow(&mut self) -> Result<()> {
        loop {
            let status = match waitpid(None, Some(WaitPidFlag::__WALL)) {
                Ok(status) => status,
                Err(Errno::ECHILD) => return Ok(()),
                Err(Errno::EINTR) => continue,
                Err(error) => return Err(error.into()),
            };
            let Some(tid) = status.pid() else { continue };
            let is_new = !self.roles.contains_key(&tid);
            match status {
                WaitStatus::Exited(..) | WaitStatus::Signaled(..) => {
                    self.roles.remove(&tid);
                    continue;
                }
                _ if is_new => self.take_on(tid),
                _ => {}
            }
            let mut signal = None;
            match status {
                WaitStatus::PtraceSyscall(tid) if self.at_call(tid)? => return Ok(()),
                WaitStatus::PtraceEvent(_, _, event)
                    if event == Event::PTRACE_EVENT_EXEC as i32
                        && self.who(tid) == Some(Victim::Grandchild) =>
                {
                    // From here on it is the container's program.
                    self.let_go(tid);
                    continue;
                }
                WaitStatus::Stopped(_, sent) => signal = Some(sent),
                _ => {}
            }
            self.resume(tid, signal);
        }
    }

    fn who(&self, tid: Pid) -> Option<Victim> {
        self.roles.get(&tid).map(|role| role.who)
    }

    /// Determines the owner of a new thread or process.
    fn take_on(&mut self, tid: Pid) {
        let status = std::fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            Pid::from_raw(line.and_then(|text| text.trim().parse().ok()).unwrap_or(0))
        };
        let (process, parent) = (number("Tgid:"), number("PPid:"));
        let of = |pid: Pid| self.roles.values().find(|role| role.process == pid);
        let who = match of(process) {
            Some(role) => role.who,
            None => match of(parent).map(|role| role.who) {
                Some(Victim::Process) => Victim::Child,
                _ => Victim::Grandchild,
            },
        };
        self.roles.insert(tid, Role { process, who });
    }

    /// Handles the entry or exit of a call. Returns whether the victim was killed.
    fn at_call(&mut self, tid: Pid) -> Result<bool> {
        let Ok(mut registers) = ptrace::getregs(tid) else {
            return Ok(false);
        };
        if self.failing.remove(&tid) {
            registers.rax = (-i64::from(libc::ENOSPC)).cast_unsigned();
            let _ = ptrace::setregs(tid, registers);
            return Ok(false);
        }
        let Some(role) = self.roles.get(&tid).copied() else {
            return Ok(false);
        };
        if role.who != self.order.victim || registers.rax != ENTERED {
            return Ok(false);
        }
        let Some(call) = calls::read(tid.as_raw(), &registers) else {
            return Ok(false);
        };
        if self.order.fault == Fault::NoSpace && !call.needs_space {
            return Ok(false);
        }
        self.count += 1;
        self.tell(&format!("step {}", call.text))?;
        if !self.order.at.is(self.count, &call.text) {
            return Ok(false);
        }
        match self.order.fault {
            Fault::Kill => {
                // An observer of the process's death may kill this tracer immediately.
                self.tell(&format!("{FAULT} {}", call.text))?;
                // Before the call: a killed thread does not enter it any more.
                kill(role.process, Signal::SIGKILL)?;
                Ok(true)
            }
            Fault::NoSpace => {
                registers.orig_rax = NO_CALL;
                if ptrace::setregs(tid, registers).is_ok() {
                    self.failing.insert(tid);
                    self.tell(&format!("{FAULT} {}", call.text))?;
                }
                Ok(false)
            }
        }
    }

    fn resume(&mut self, tid: Pid, signal: Option<Signal>) {
        // A thread that was killed is reported by the next wait.
        let _ = match self.who(tid) {
            Some(who) if who == self.order.victim => ptrace::syscall(tid, signal),
            Some(_) if self.order.victim == Victim::Process => {
                return self.let_go(tid);
            }
            _ => ptrace::cont(tid, signal),
        };
    }

    fn let_go(&mut self, tid: Pid) {
        let _ = ptrace::detach(tid, None);
        self.roles.remove(&tid);
    }
}
