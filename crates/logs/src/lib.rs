//! Container logs: where they lie, what a line is, and how they are read and followed.
//!
//! - [`layout`]: names of folders, files and links, as the kubelet lays them out; no effects.
//! - [`folders`], [`links`]: making and removing them.
//! - [`entry`]: one recorded line of the CRI format.
//! - [`read`]: the log API: tail, since, limit, timestamps, follow across rotation.

pub mod entry;
pub mod folders;
pub mod layout;
pub mod links;
pub mod read;
