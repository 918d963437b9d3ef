//! Entries of the record.

use std::{fmt, sync::Arc, time::Duration};

use rubelet_cri::{ContainerEvent, CriErrorKind};

use crate::Subject;

/// An event in the model, with its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Time since the model started.
    pub at: Duration,
    /// What happened.
    pub what: EntryKind,
}

/// One container, as created in the runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// The runtime's identifier.
    pub id: String,
    /// Its sandbox.
    pub sandbox_id: String,
    /// The UID in the sandbox's metadata.
    pub pod_uid: String,
    /// The name in its own metadata.
    pub name: String,
    /// The attempt in its own metadata.
    pub attempt: u32,
}

impl Instance {
    /// The subject of calls and events about it.
    pub(crate) fn subject(&self) -> Subject {
        Subject {
            id: Some(self.id.clone()),
            ..Subject::container(&self.pod_uid, &self.name)
        }
    }
}

/// Outcome of a call for its caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallOutcome {
    /// It succeeded.
    Done,
    /// It failed with this kind and message.
    Failed(CriErrorKind, String),
    /// The caller dropped its future.
    Dropped,
}

/// Kinds of entries.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "the fields are those of the variants around them"
)]
pub enum EntryKind {
    /// A call arrived; `number` pairs it with its end.
    CallBegan {
        number: u64,
        call: &'static str,
        subject: Subject,
    },
    /// A call ended.
    CallEnded {
        number: u64,
        call: &'static str,
        subject: Subject,
        outcome: CallOutcome,
    },
    /// A sandbox became ready.
    SandboxReady {
        id: String,
        pod_uid: String,
        attempt: u32,
    },
    /// A sandbox is no longer ready.
    SandboxStopped { id: String, pod_uid: String },
    /// A sandbox was removed.
    SandboxRemoved { id: String, pod_uid: String },
    /// A container was created.
    ContainerCreated(Arc<Instance>),
    /// A container's process was started.
    ContainerStarted(Arc<Instance>),
    /// A container's process could not be started.
    ContainerNotStarted(Arc<Instance>),
    /// A container's process was sent SIGTERM.
    SigtermSent(Arc<Instance>),
    /// A container's process exited. `reason` is the one that the runtime reports.
    ContainerExited {
        instance: Arc<Instance>,
        code: i32,
        reason: String,
    },
    /// A container was removed.
    ContainerRemoved(Arc<Instance>),
    /// A command was started in a container.
    ExecBegan {
        instance: Arc<Instance>,
        command: Vec<String>,
    },
    /// A command ended, with this exit code; `None`: it was killed because its caller cancelled it
    /// or its timeout was exceeded.
    ExecEnded {
        instance: Arc<Instance>,
        command: Vec<String>,
        code: Option<i32>,
    },
    /// A container's log file was reopened.
    LogReopened(Arc<Instance>),
    /// An image was pulled.
    ImagePulled(String),
    /// An image was removed.
    ImageRemoved(String),
    /// The runtime stopped responding; its containers continue.
    RuntimeDown,
    /// The runtime responds again.
    RuntimeUp,
    /// An event stream with this number was opened.
    EventStreamOpened(u64),
    /// An event stream ended: without an error, with one, or because its reader dropped it.
    EventStreamEnded { stream: u64, outcome: CallOutcome },
    /// The runtime emitted the event with this number.
    EventEmitted(u64, Arc<ContainerEvent>),
    /// A reader of a stream received the event with this number, with the changes that faults made.
    EventDelivered {
        number: u64,
        stream: u64,
        event: Arc<ContainerEvent>,
    },
    /// The event with this number is lost, for this reason.
    EventLost(u64, &'static str),
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>10.3}s  {}", self.at.as_secs_f64(), self.what)
    }
}

impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "pod={} container={} attempt={} id={}",
            self.pod_uid, self.name, self.attempt, self.id
        )
    }
}

impl fmt::Display for EntryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CallBegan {
                number,
                call,
                subject,
            } => write!(f, "#{number} {call}{subject} ..."),
            Self::CallEnded {
                number,
                call,
                subject,
                outcome,
            } => match outcome {
                CallOutcome::Done => write!(f, "#{number} {call}{subject} ok"),
                CallOutcome::Dropped => write!(f, "#{number} {call}{subject} dropped"),
                CallOutcome::Failed(kind, message) => {
                    write!(f, "#{number} {call}{subject} {kind}: {message}")
                }
            },
            Self::SandboxReady {
                id,
                pod_uid,
                attempt,
            } => write!(f, "sandbox ready: pod={pod_uid} attempt={attempt} id={id}"),
            Self::SandboxStopped { id, pod_uid } => {
                write!(f, "sandbox stopped: pod={pod_uid} id={id}")
            }
            Self::SandboxRemoved { id, pod_uid } => {
                write!(f, "sandbox removed: pod={pod_uid} id={id}")
            }
            Self::ContainerCreated(instance) => write!(f, "container created: {instance}"),
            Self::ContainerStarted(instance) => write!(f, "container started: {instance}"),
            Self::ContainerNotStarted(instance) => write!(f, "container not started: {instance}"),
            Self::SigtermSent(instance) => write!(f, "container got SIGTERM: {instance}"),
            Self::ContainerExited {
                instance,
                code,
                reason,
            } => write!(
                f,
                "container exited: {instance} code={code} reason={reason}"
            ),
            Self::ContainerRemoved(instance) => write!(f, "container removed: {instance}"),
            Self::ExecBegan { instance, command } => {
                write!(f, "command began: {instance} {command:?}")
            }
            Self::ExecEnded {
                instance,
                command,
                code: Some(code),
            } => write!(f, "command ended: {instance} {command:?} code={code}"),
            Self::ExecEnded {
                instance, command, ..
            } => write!(f, "command killed: {instance} {command:?}"),
            Self::LogReopened(instance) => write!(f, "log reopened: {instance}"),
            Self::ImagePulled(image) => write!(f, "image pulled: {image}"),
            Self::ImageRemoved(image) => write!(f, "image removed: {image}"),
            Self::RuntimeDown => f.write_str("runtime down"),
            Self::RuntimeUp => f.write_str("runtime up"),
            Self::EventStreamOpened(stream) => write!(f, "events #{stream} ..."),
            Self::EventStreamEnded { stream, outcome } => match outcome {
                CallOutcome::Done => write!(f, "events #{stream} end"),
                CallOutcome::Dropped => write!(f, "events #{stream} dropped"),
                CallOutcome::Failed(kind, message) => {
                    write!(f, "events #{stream} {kind}: {message}")
                }
            },
            Self::EventEmitted(number, event) => {
                write!(f, "event {number} emitted: {}", EventText(event))
            }
            Self::EventDelivered {
                number,
                stream,
                event,
            } => write!(f, "events #{stream} got {number}: {}", EventText(event)),
            Self::EventLost(number, why) => write!(f, "event {number} lost: {why}"),
        }
    }
}

/// An event on one line.
struct EventText<'a>(&'a ContainerEvent);

impl fmt::Display for EventText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let event = self.0;
        let kind = event.kind.as_str_name();
        let short = kind.trim_start_matches("CONTAINER_");
        let pod = event.pod_uid.as_deref().unwrap_or("?");
        write!(
            f,
            "{} pod={pod} id={}",
            short.trim_end_matches("_EVENT"),
            event.container
        )
    }
}
