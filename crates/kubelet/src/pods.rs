//! Which pods have a task: compares what the sources want with the tasks there are and with what
//! the runtime holds.

mod admission;
mod admit;
mod decide;
mod node_match;
mod orphan;
mod table;

pub(crate) use table::PodTable;

#[cfg(test)]
mod tests;
