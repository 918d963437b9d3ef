//! All tasks of a node together, on a model runtime with paused time. Each file covers one subject;
//! assertions read the model's oracle and what the node published.

mod cluster;
mod fake_objects;
mod host;
mod net;
mod node;
mod wire;

mod edits;
mod ephemeral_target;
mod eviction;
mod hanging;
mod health;
mod hooks;
mod host_ports;
mod image_access;
mod image_collection;
mod killed_agent;
mod log_rotation;
mod lost_answers;
mod metrics;
mod objects;
mod orphans;
mod outages;
mod partial_lists;
mod pleg;
mod pools;
mod pulls;
mod random;
mod records;
mod removal;
mod replaced_pods;
mod restarts;
mod starting;
mod stories;
mod termination;
mod terminations;
