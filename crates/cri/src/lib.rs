//! The Container Runtime Interface, version 1: its messages and the two services as traits.
//!
//! A caller holds an `Arc<dyn RuntimeService>` and an `Arc<dyn ImageService>` and cannot tell a
//! runtime behind a socket from one in the same process. No transport, no clock, no effects here.

mod call;
mod error;
mod event;
mod image;
mod methods;
mod runtime;
pub mod v1;

pub use call::{CALLS, Call, Changed, Timeouts};
pub use error::{CriError, CriErrorKind};
pub use event::{ContainerEvent, EventStream};
pub use image::{ImageLoader, ImageService, ONE_NAME, PLATFORM};
pub use runtime::RuntimeService;
pub use tonic::Code;

/// The result of a call: the response message, or what went wrong.
pub type CriResult<T> = Result<T, CriError>;
