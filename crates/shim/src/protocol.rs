//! What an agent and a shim say to each other. Pure: bytes in, messages out.
//!
//! A [frame](frame) carries one JSON message and up to [`MAX_FDS`] file descriptors. Each side says
//! [`Hello`] first. Unknown fields are ignored, unknown calls are answered with
//! [`FailureKind::Unsupported`], unknown events are acknowledged and skipped, so that an agent and a
//! shim of different releases understand each other.

mod call;
pub mod frame;
mod reply;

use serde::{Deserialize, Serialize};

pub use call::{
    Call, CreateContainer, ExternalRuntime, Rootfs, RuntimeChoice, SandboxSetup, ShmMount,
    SignalTarget, StartExec, StreamFds, UserMappings,
};
pub use frame::{DecodeError, Decoder, Frame, MAX_FDS, MAX_FRAME, encode};
pub use reply::{
    Answer, ContainerPhase, ContainerState, Event, Failure, FailureKind, LogState, SandboxState,
    State,
};

/// Version of the protocol. It grows only when an older side could misunderstand a newer one.
pub const VERSION: u32 = 1;

/// The first message of each side.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hello {
    /// The newest version that this side speaks; the lower one of both is spoken.
    pub version: u32,
    /// Said by an agent: it wants the events, and whoever had them before gets none any more.
    pub subscribe: bool,
    /// Process ID of the side that speaks.
    pub pid: i32,
}

/// A call with its number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Chosen by the agent; the reply has the same one.
    pub id: u64,
    /// What is to be done.
    pub call: Call,
}

/// What an agent says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromAgent {
    /// Comes first.
    Hello(Hello),
    /// Something is to be done. Replies come in any order.
    Request(Request),
    /// All events up to that sequence number are known; the shim forgets them.
    Ack {
        /// The sequence number.
        upto: u64,
    },
}

/// What a shim says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromShim {
    /// Comes first.
    Hello(Hello),
    /// The end of a call.
    Reply {
        /// The number of the request.
        id: u64,
        /// How it went.
        #[serde(flatten)]
        outcome: Outcome,
    },
    /// Something happened. It is said again to each agent that subscribes, until it is acknowledged.
    Event {
        /// Grows by one with each event of a shim, from 1.
        sequence: u64,
        /// What happened.
        event: Event,
    },
    /// The shim closes the connection because of what the agent sent.
    Goodbye {
        /// Why.
        reason: String,
    },
}

/// How a call went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was done.
    Answer(Answer),
    /// It was not.
    Failure(Failure),
}

impl From<Result<Answer, Failure>> for Outcome {
    fn from(result: Result<Answer, Failure>) -> Self {
        match result {
            Ok(answer) => Self::Answer(answer),
            Err(failure) => Self::Failure(failure),
        }
    }
}

impl From<Outcome> for Result<Answer, Failure> {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Answer(answer) => Ok(answer),
            Outcome::Failure(failure) => Err(failure),
        }
    }
}

/// A message of an agent as the shim reads it.
#[derive(Debug, PartialEq)]
pub enum Understood {
    /// A message that this release knows.
    Message(FromAgent),
    /// A request with a call, or with arguments, that this release doesn't know.
    UnknownCall {
        /// Number of the request.
        id: u64,
        /// What is wrong.
        why: String,
    },
    /// A message of a later release that needs no reply.
    Ignored,
}

/// Reads the body of a frame that came from an agent.
///
/// # Errors
/// It is no JSON object, so whoever sent it doesn't speak this protocol.
pub fn from_agent(body: &[u8]) -> Result<Understood, DecodeError> {
    #[derive(Deserialize)]
    struct Head {
        request: Option<Number>,
    }
    #[derive(Deserialize)]
    struct Number {
        id: u64,
    }
    match serde_json::from_slice(body) {
        Ok(message) => Ok(Understood::Message(message)),
        Err(why) => match serde_json::from_slice::<Head>(body) {
            Ok(Head {
                request: Some(Number { id }),
            }) => Ok(Understood::UnknownCall {
                id,
                why: why.to_string(),
            }),
            Ok(_) => Ok(Understood::Ignored),
            Err(_) => Err(DecodeError::Json(why.to_string())),
        },
    }
}

/// Reads the body of a frame that came from a shim. `None` is a message of a later release that can
/// be skipped.
///
/// # Errors
/// It is no JSON object, or a reply that can't be read.
pub fn from_shim(body: &[u8]) -> Result<Option<FromShim>, DecodeError> {
    #[derive(Deserialize)]
    struct Head {
        event: Option<Number>,
        reply: Option<Id>,
    }
    #[derive(Deserialize)]
    struct Number {
        sequence: u64,
    }
    #[derive(Deserialize)]
    struct Id {
        id: u64,
    }
    match serde_json::from_slice(body) {
        Ok(message) => Ok(Some(message)),
        Err(why) => match serde_json::from_slice::<Head>(body) {
            Ok(Head {
                event: Some(Number { sequence }),
                ..
            }) => Ok(Some(FromShim::Event {
                sequence,
                event: Event::Unknown,
            })),
            Ok(Head {
                reply: Some(Id { id }),
                ..
            }) => Ok(Some(FromShim::Reply {
                id,
                outcome: Outcome::Failure(Failure::new(
                    FailureKind::Internal,
                    format!("the shim's answer can't be read: {why}"),
                )),
            })),
            Ok(_) => Ok(None),
            Err(_) => Err(DecodeError::Json(why.to_string())),
        },
    }
}

#[cfg(test)]
mod tests;
