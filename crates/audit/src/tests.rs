//! Policies, and the log on good and bad disks. Requests are recorded by the servers, whose own tests
//! show with what.

mod disk;
mod policy;
