//! The Container Runtime Interface, version 1: its messages and the two services as traits.
//!
//! A caller holds an `Arc<dyn RuntimeService>` and an `Arc<dyn ImageService>` and cannot tell a
//! runtime behind a socket from one in the same process. No transport, no clock, no effects here.
//!
//! ```
//! use std::time::Duration;
//!
//! use rubelet_cri::{Call, Timeouts, v1};
//!
//! let stop = v1::StopContainerRequest { timeout: 30, ..Default::default() };
//! // The runtime waits for the grace period, so the call may take that much longer.
//! assert_eq!(stop.deadline(&Timeouts::default()), Some(Duration::from_secs(150)));
//! ```

mod call;
mod error;
mod event;
mod image;
mod methods;
mod runtime;
pub mod v1;

pub use call::{CALLS, Call, ChangedObject, Timeouts};
pub use error::{CriError, CriErrorKind};
pub use event::{ContainerEvent, EventStream};
pub use image::{ImageLoader, ImageService, ONE_NAME, PLATFORM, image_directory};
pub use runtime::RuntimeService;
pub use tonic::Code;

/// The result of a call: the response message, or what went wrong.
pub type CriResult<T> = Result<T, CriError>;
