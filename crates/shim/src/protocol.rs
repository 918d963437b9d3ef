//! The protocol between agent and shim. Pure: bytes in, messages out.
//!
//! A [`frame`] carries one JSON message and up to [`MAX_FDS`] file descriptors. Each side sends
//! [`Hello`] first. Unknown fields are ignored, unknown calls are answered with
//! [`FailureKind::Unsupported`], unknown events are acknowledged and skipped, so that an agent and
//! a shim of different releases understand each other.

mod call;
pub mod frame;
mod reply;

use serde::{Deserialize, Serialize};

pub use call::{
    Call, CreateContainer, ExternalRuntime, Rootfs, RuntimeChoice, SandboxSetup, ShmMount,
    SignalTarget, StartExec, StreamFds,
};
pub use frame::{DecodeError, Decoder, Frame, MAX_FDS, MAX_FRAME, encode};
pub use reply::{
    CallFailure, ContainerPhase, ContainerState, Event, FailureKind, LogState, SandboxState,
    ShimReply, ShimState,
};

/// Version of the protocol. It grows only when an older side could misunderstand a newer one.
pub const VERSION: u32 = 1;

/// The first message of each side.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hello {
    /// The newest version that this side supports; the lower one of both is used.
    pub version: u32,
    /// Set by an agent that subscribes to events; an earlier subscriber no longer gets any.
    pub subscribe: bool,
    /// Process ID of the sender.
    pub pid: i32,
}

/// A call with its number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Chosen by the agent; the reply has the same one.
    pub id: u64,
    /// The call.
    pub call: Call,
}

/// A message of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromAgent {
    /// The first message.
    Hello(Hello),
    /// A call. Replies come in any order.
    Request(Request),
    /// Acknowledges all events up to a sequence number; the shim drops them.
    Ack {
        /// The sequence number.
        upto: u64,
    },
}

/// A message of a shim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromShim {
    /// The first message.
    Hello(Hello),
    /// The reply to a call.
    Reply {
        /// The number of the request.
        id: u64,
        /// The result.
        #[serde(flatten)]
        outcome: CallResult,
    },
    /// An event. Sent again to each agent that subscribes, until it is acknowledged.
    Event {
        /// Grows by one with each event of a shim, from 1.
        sequence: u64,
        /// An event.
        event: Event,
    },
    /// The shim closes the connection because of what the agent sent.
    Goodbye {
        /// The reason.
        reason: String,
    },
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallResult {
    /// Success.
    Answer(ShimReply),
    /// Failure.
    Failure(CallFailure),
}

impl From<Result<ShimReply, CallFailure>> for CallResult {
    fn from(result: Result<ShimReply, CallFailure>) -> Self {
        match result {
            Ok(answer) => Self::Answer(answer),
            Err(failure) => Self::Failure(failure),
        }
    }
}

impl From<CallResult> for Result<ShimReply, CallFailure> {
    fn from(outcome: CallResult) -> Self {
        match outcome {
            CallResult::Answer(answer) => Ok(answer),
            CallResult::Failure(failure) => Err(failure),
        }
    }
}

/// A message of an agent, as decoded by the shim.
#[derive(Debug, PartialEq)]
pub enum DecodedMessage {
    /// A message that this release knows.
    Message(FromAgent),
    /// A request with an unknown call or unknown arguments.
    UnknownCall {
        /// Number of the request.
        id: u64,
        /// The decoding error.
        why: String,
    },
    /// An unknown message without a reply.
    Ignored,
}

/// Decodes the body of a frame from an agent.
///
/// # Errors
/// It is not a JSON object, so the peer does not use this protocol.
pub fn from_agent(body: &[u8]) -> Result<DecodedMessage, DecodeError> {
    #[derive(Deserialize)]
    struct Head {
        request: Option<Number>,
    }
    #[derive(Deserialize)]
    struct Number {
        id: u64,
    }
    match serde_json::from_slice(body) {
        Ok(message) => Ok(DecodedMessage::Message(message)),
        Err(why) => match serde_json::from_slice::<Head>(body) {
            Ok(Head {
                request: Some(Number { id }),
            }) => Ok(DecodedMessage::UnknownCall {
                id,
                why: why.to_string(),
            }),
            Ok(_) => Ok(DecodedMessage::Ignored),
            Err(_) => Err(DecodeError::Json(why.to_string())),
        },
    }
}

/// Decodes the body of a frame from a shim. `None` is an unknown message that can be skipped.
///
/// # Errors
/// It is not a JSON object, or a reply that can't be decoded.
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
                outcome: CallResult::Failure(CallFailure::new(
                    FailureKind::Internal,
                    format!("cannot decode the reply of the shim: {why}"),
                )),
            })),
            Ok(_) => Ok(None),
            Err(_) => Err(DecodeError::Json(why.to_string())),
        },
    }
}

#[cfg(test)]
mod tests;
