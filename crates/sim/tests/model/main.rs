//! The model against what containerd does.

mod containers;
mod faults;
mod images;
mod oracle;
mod pod;
mod sandboxes;
mod stopping;
