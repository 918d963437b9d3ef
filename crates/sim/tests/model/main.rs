//! The model against what containerd does.

mod containers;
mod event_faults;
mod events;
mod faults;
mod images;
mod oracle;
mod pod;
mod reader;
mod sandboxes;
mod stopping;
