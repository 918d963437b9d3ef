//! The prober under paused time, with scripted answers.

mod events;
mod exec;
mod late;
mod outcomes;
mod rig;
mod sockets;
mod timing;
