//! Container logs: paths, format, reading, following and rotation.
//!
//! This crate never writes a line of a log, as only the runtime does, and never follows a link that
//! a container can have made.
//!
//! - [`layout`]: names of directories, files and links, as the kubelet lays them out; pure.
//! - [`directories`], [`links`]: creating and removing them.
//! - [`entry`]: one recorded line of the CRI format.
//! - [`read`]: the log API: tail, since, limit, timestamps, follow across rotation.
//! - [`rotation`]: rotation of large logs, compression and removal of old files.
//! - [`place`]: the directory of one log by descriptor, which a container may be able to write to.
//! - [`system`]: other files of `/var/log`, for the kubelet API.
//!
//! ```
//! use rubelet_logs::entry::{StdStream, parse_header};
//!
//! let line = b"2026-01-01T00:00:00.5Z stderr F out of disk";
//! let header = parse_header(line).expect("the CRI format");
//! assert_eq!(header.stream, StdStream::Stderr);
//! assert_eq!(&line[header.content_at..], b"out of disk");
//! ```

pub mod directories;
pub mod entry;
mod file_error;
pub mod layout;
pub mod links;
pub mod place;
pub mod read;
pub mod rotation;
pub mod system;

pub use file_error::FileError;
