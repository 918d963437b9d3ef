//! System calls that have no safe wrapper elsewhere. All `unsafe` of the crate is below here.

pub(crate) mod clone;
pub(crate) mod keyring;
pub(crate) mod loopback;
pub(crate) mod mount_attr;
pub(crate) mod process;
pub(crate) mod seccomp;
