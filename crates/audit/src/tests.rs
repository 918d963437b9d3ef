//! Policies, and the log on good and bad disks. The servers' own tests cover what they record of
//! requests.

mod disk;
mod policy;
