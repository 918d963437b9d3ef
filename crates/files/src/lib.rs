//! Copies files out of containers and into them, as tar streams.
//!
//! One side sends a [`Source`], the other one receives it at a [`Destination`]; either may be in a
//! container or not. A container is accessed by a descriptor of its root directory
//! ([`ContainerRoot`]), so it needs no `tar` and no shell.
//!
//! The tree on either side may change while it is copied, and in a container it may be hostile. So
//! each step goes by descriptor from one directory to the next. A link is copied as a link: none is
//! followed below the named source, and nothing is written through one. For entries that are
//! neither files, directories nor links only the type is sent, and receivers skip them. Functions
//! block.
//!
//! This crate never starts a process, never enters a namespace, and does not find containers or
//! decide who may copy: the caller hands it the root directory.
//!
//! ```
//! use rubelet_files::{Attributes, Destination, Source};
//!
//! let directory = tempfile::tempdir()?;
//! let (from, to) = (directory.path().join("from"), directory.path().join("to"));
//! std::fs::write(&from, "text")?;
//! let mut stream = Vec::new();
//! Source::local(&from)?.send(&mut stream)?;
//! let received = Destination::local(&to)?.receive(&*stream, Attributes::Restricted)?;
//! assert_eq!((received.entries, std::fs::read(&to)?), (1, b"text".to_vec()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod channel;
mod container;
mod destination;
mod error;
mod lookup;
mod receive;
mod send;
mod sparse;
mod write;

pub use channel::{StreamReader, StreamWriter};
pub use container::ContainerRoot;
pub use destination::Destination;
pub use error::FilesError;
pub use lookup::Source;
pub use receive::{Attributes, Received};
