//! Policies, and the log on good and bad disks. The doors have their own tests beside their others.

mod disk;
pub(crate) mod journal;
mod policy;
