//! A shim and its containers, driven as an agent drives them. As root, on the host's cgroups.

mod exec;
mod fixture;
mod lifecycle;
mod logs;
mod protocol;
mod streams;
mod survival;
