//! One line of the record.

use std::{fmt, sync::Arc, time::Duration};

use rubelet_cri::{ContainerEvent, CriErrorKind};

use crate::Subject;

/// Something that happened, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Time since the model started.
    pub at: Duration,
    /// What it was.
    pub what: EntryKind,
}

/// One container as the runtime made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// The runtime's identifier.
    pub id: String,
    /// The sandbox it is in.
    pub sandbox_id: String,
    /// The UID in the sandbox's metadata.
    pub pod_uid: String,
    /// The name in its own metadata.
    pub name: String,
    /// The attempt in its own metadata.
    pub attempt: u32,
}

impl Instance {
    /// What calls and events about it are about.
    pub(crate) fn subject(&self) -> Subject {
        Subject {
            id: Some(self.id.clone()),
            ..Subject::container(&self.pod_uid, &self.name)
        }
    }
}

/// How a call ended for its caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallOutcome {
    /// It succeeded.
    Done,
    /// It failed with this kind and message.
    Failed(CriErrorKind, String),
    /// The caller dropped it.
    Dropped,
}

/// The things that happen.
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
    /// A sandbox ceased to be ready.
    SandboxStopped { id: String, pod_uid: String },
    /// A sandbox is gone.
    SandboxRemoved { id: String, pod_uid: String },
    /// A container was made.
    ContainerCreated(Arc<Instance>),
    /// A container's process runs.
    ContainerStarted(Arc<Instance>),
    /// A container's process could not be started.
    ContainerNotStarted(Arc<Instance>),
    /// A container's process was sent SIGTERM.
    ContainerTermed(Arc<Instance>),
    /// A container's process ended. `reason` as the runtime reports it.
    ContainerExited {
        instance: Arc<Instance>,
        code: i32,
        reason: String,
    },
    /// A container is gone.
    ContainerRemoved(Arc<Instance>),
    /// A command was begun in a container.
    ExecBegan {
        instance: Arc<Instance>,
        command: Vec<String>,
    },
    /// A command ended, with this exit code; `None`: it was killed because its caller gave it up, or
    /// allowed it no more time.
    ExecEnded {
        instance: Arc<Instance>,
        command: Vec<String>,
        code: Option<i32>,
    },
    /// A container's log file was reopened.
    LogReopened(Arc<Instance>),
    /// An image arrived.
    ImagePulled(String),
    /// An image is gone.
    ImageRemoved(String),
    /// The runtime stopped answering; its containers continue.
    RuntimeDown,
    /// The runtime answers again.
    RuntimeUp,
    /// A stream of events was opened; it has this number.
    EventStreamOpened(u64),
    /// A stream of events ended: well, by an error, or because its reader dropped it.
    EventStreamEnded { stream: u64, outcome: CallOutcome },
    /// The runtime emitted an event, unchanged; it has this number.
    EventEmitted(u64, Arc<ContainerEvent>),
    /// A reader of a stream got the event with this number, as it came.
    EventDelivered {
        number: u64,
        stream: u64,
        event: Arc<ContainerEvent>,
    },
    /// Nobody will get the event with this number, for this reason.
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
            Self::ContainerTermed(instance) => write!(f, "container got SIGTERM: {instance}"),
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
