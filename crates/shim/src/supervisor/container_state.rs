//! The states of a container. Each holds what exists in it, and nothing else.

use std::os::fd::OwnedFd;

use super::connection::ReplyTo;
use crate::{
    ExitRecord,
    protocol::ContainerPhase,
    runtime::{ProcessExit, Startup},
};

/// The state of a container. Its deletion is not a state: it may fail, and leaves the container in
/// the state that it is in.
#[derive(Debug)]
pub(super) enum ContainerState {
    /// The runtime creates it.
    Creating {
        /// `None` once it failed; then the container is being deleted.
        startup: Option<Box<dyn Startup>>,
        /// The pending `Create` request.
        caller: Option<ReplyTo>,
        /// `None` until the runtime reports it.
        init: Option<Init>,
    },
    /// Its init exited before it was created. It is being deleted, and no agent knows it.
    Aborted {
        /// The PID that its init had.
        pid: i32,
    },
    /// It is created, and waits for its start.
    Created {
        /// `None` once the start failed; then its init exits.
        startup: Option<Box<dyn Startup>>,
        /// The pending `Start` request.
        caller: Option<ReplyTo>,
        /// Its init.
        init: Init,
        /// When it was created, in nanoseconds since 1970.
        created_at_ns: u64,
    },
    /// Its program runs.
    Running {
        /// Its init.
        init: Init,
        /// When it was created, in nanoseconds since 1970.
        created_at_ns: u64,
        /// When its program was started, in nanoseconds since 1970.
        started_at_ns: u64,
    },
    /// It has exited.
    Exited {
        /// The PID that its init had.
        pid: i32,
        /// When it was created, in nanoseconds since 1970.
        created_at_ns: u64,
        /// How it exited.
        exit: ExitRecord,
        /// The exit record is written.
        recorded: bool,
    },
}

/// The init of a container, until its exit is handled.
#[derive(Debug)]
pub(super) enum Init {
    /// It was not reaped.
    Alive {
        /// Its PID.
        pid: i32,
        /// Its pidfd.
        handle: OwnedFd,
    },
    /// It was reaped before an external runtime reported what it did with it. Its exit is handled
    /// after that report.
    Ended {
        /// The PID that it had.
        pid: i32,
        /// How it exited.
        exit: ProcessExit,
    },
}

impl Init {
    fn pid(&self) -> i32 {
        match self {
            Self::Alive { pid, .. } | Self::Ended { pid, .. } => *pid,
        }
    }
}

impl ContainerState {
    /// A container whose creation has begun, for a request that waits.
    pub(super) fn creating(startup: Box<dyn Startup>, caller: ReplyTo) -> Self {
        Self::Creating {
            startup: Some(startup),
            caller: Some(caller),
            init: None,
        }
    }

    /// The phase as agents know it.
    pub(super) fn phase(&self) -> ContainerPhase {
        match self {
            Self::Creating { .. } => ContainerPhase::Creating,
            Self::Created { .. } => ContainerPhase::Created,
            Self::Running { .. } => ContainerPhase::Running,
            Self::Aborted { .. } | Self::Exited { .. } => ContainerPhase::Exited,
        }
    }

    /// The PID of its init, also after its exit; 0 before the runtime reports it.
    pub(super) fn pid(&self) -> i32 {
        match self {
            Self::Aborted { pid } | Self::Exited { pid, .. } => *pid,
            _ => self.init().map_or(0, Init::pid),
        }
    }

    /// When it was created, and its program started, in nanoseconds since 1970; 0 before.
    pub(super) fn times_ns(&self) -> (u64, u64) {
        match self {
            Self::Creating { .. } | Self::Aborted { .. } => (0, 0),
            Self::Created { created_at_ns, .. } => (*created_at_ns, 0),
            Self::Running {
                created_at_ns,
                started_at_ns,
                ..
            } => (*created_at_ns, *started_at_ns),
            Self::Exited {
                created_at_ns,
                exit,
                ..
            } => (*created_at_ns, exit.started_at_ns),
        }
    }

    /// Its exit.
    pub(super) fn exit(&self) -> Option<&ExitRecord> {
        match self {
            Self::Exited { exit, .. } => Some(exit),
            _ => None,
        }
    }

    /// Whether an agent knows it: it was created, whatever became of it.
    pub(super) fn was_created(&self) -> bool {
        !matches!(self, Self::Creating { .. } | Self::Aborted { .. })
    }

    /// Its init, until its exit is handled.
    pub(super) fn init(&self) -> Option<&Init> {
        match self {
            Self::Creating { init, .. } => init.as_ref(),
            Self::Created { init, .. } | Self::Running { init, .. } => Some(init),
            Self::Aborted { .. } | Self::Exited { .. } => None,
        }
    }

    fn init_mut(&mut self) -> Option<&mut Init> {
        match self {
            Self::Creating { init, .. } => init.as_mut(),
            Self::Created { init, .. } | Self::Running { init, .. } => Some(init),
            Self::Aborted { .. } | Self::Exited { .. } => None,
        }
    }

    /// The PID and pidfd of its init, until that is reaped.
    pub(super) fn alive_init(&self) -> Option<(i32, &OwnedFd)> {
        match self.init() {
            Some(Init::Alive { pid, handle }) => Some((*pid, handle)),
            _ => None,
        }
    }

    /// The exit of its init that waits for the report of the runtime.
    pub(super) fn early_exit(&self) -> Option<ProcessExit> {
        match self.init() {
            Some(Init::Ended { exit, .. }) => Some(*exit),
            _ => None,
        }
    }

    /// The creation or start in progress.
    pub(super) fn startup_mut(&mut self) -> Option<&mut Box<dyn Startup>> {
        match self {
            Self::Creating { startup, .. } | Self::Created { startup, .. } => startup.as_mut(),
            _ => None,
        }
    }

    /// Takes the creation or start in progress; what remains is to exit.
    pub(super) fn take_startup(&mut self) -> Option<Box<dyn Startup>> {
        match self {
            Self::Creating { startup, .. } | Self::Created { startup, .. } => startup.take(),
            _ => None,
        }
    }

    /// The program of the runtime that creates or starts it.
    pub(super) fn helper(&self) -> Option<i32> {
        match self {
            Self::Creating { startup, .. } | Self::Created { startup, .. } => {
                startup.as_ref().and_then(|one| one.helper())
            }
            _ => None,
        }
    }

    /// Takes the pending `Create` or `Start` request.
    pub(super) fn take_caller(&mut self) -> Option<ReplyTo> {
        match self {
            Self::Creating { caller, .. } | Self::Created { caller, .. } => caller.take(),
            _ => None,
        }
    }

    /// The runtime reports the init. It was reaped before if `ended_early` is its exit.
    pub(super) fn on_init(&mut self, found: Init) {
        if let Self::Creating { init, .. } = self {
            *init = Some(found);
        }
    }

    /// The runtime has created it. Returns its PID and the request to answer; `None` if it is not
    /// being created, or has no init.
    pub(super) fn on_created(&mut self, at_ns: u64) -> Option<(i32, Option<ReplyTo>)> {
        let Self::Creating {
            startup,
            caller,
            init,
        } = self
        else {
            return None;
        };
        let init = init.take()?;
        let (pid, caller) = (init.pid(), caller.take());
        *self = Self::Created {
            startup: startup.take(),
            caller: None,
            init,
            created_at_ns: at_ns,
        };
        Some((pid, caller))
    }

    /// Its program was started. Returns the request to answer.
    pub(super) fn on_started(&mut self, at_ns: u64) -> Option<ReplyTo> {
        let pid = self.pid();
        match std::mem::replace(self, Self::Aborted { pid }) {
            Self::Created {
                caller,
                init,
                created_at_ns,
                ..
            } => {
                *self = Self::Running {
                    init,
                    created_at_ns,
                    started_at_ns: at_ns,
                };
                caller
            }
            other => {
                *self = other;
                None
            }
        }
    }

    /// Its init was reaped while a program of the runtime may still report it.
    pub(super) fn on_early_exit(&mut self, exit: ProcessExit) {
        if let Some(init) = self.init_mut() {
            let pid = init.pid();
            *init = Init::Ended { pid, exit };
        }
    }

    /// Its init exited. Returns the exit to record and report; `None` if it was never created, so
    /// that no agent waits for its exit.
    pub(super) fn on_exit(
        &mut self,
        ended: ProcessExit,
        at_ns: u64,
        oom_killed: bool,
    ) -> Option<ExitRecord> {
        let pid = self.pid();
        let (created_at_ns, started_at_ns) = self.times_ns();
        if !self.was_created() {
            *self = Self::Aborted { pid };
            return None;
        }
        let exit = ExitRecord {
            exit_code: ended.code(),
            signal: ended.signal(),
            at_ns,
            started_at_ns,
            oom_killed,
        };
        *self = Self::Exited {
            pid,
            created_at_ns,
            exit: exit.clone(),
            recorded: false,
        };
        Some(exit)
    }
}

#[cfg(test)]
mod tests;
