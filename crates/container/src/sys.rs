//! System calls without a safe wrapper in a library. All `unsafe` code of the crate is here.

pub(crate) mod clone;
pub(crate) mod keyring;
pub(crate) mod loopback;
pub(crate) mod mount_attr;
pub(crate) mod process;
pub(crate) mod seccomp;
