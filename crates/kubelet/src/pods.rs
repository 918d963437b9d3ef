//! Starts and ends pod tasks: compares the desired pods of the sources with the tasks and with the
//! pods in the runtime.

mod admission;
mod admit;
mod decide;
mod node_match;
mod orphan;
mod table;

pub(crate) use table::PodTable;

#[cfg(test)]
mod tests;
