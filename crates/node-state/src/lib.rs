//! What the parts of an agent share about its node: boards with the present state of pods, events, operators' requests,
//! the runtime's own report, the traits behind which an API server is, metrics, the clock, and bounds on calls. It runs no
//! task and makes no call to a runtime or an API server.
//!
//! What is shown of pods is on boards, which hold the current values and never overflow:
//!
//! ```
//! use rubelet_node_state::board::Board;
//!
//! let board = Board::new();
//! board.set("web", "Pending");
//! board.set("web", "Running");
//! let (version, changes) = board.since(0);
//! assert_eq!(changes.len(), 1, "a reader that is late skips what is over");
//! assert_eq!(*changes[0].2, "Running");
//! assert!(board.since(version).1.is_empty());
//! ```

pub mod board;
pub mod clock;
pub mod cluster_view;
pub mod events;
pub mod heartbeat;
pub mod host_error;
pub mod intents;
pub mod keyring;
pub mod metrics;
pub mod node_ips;
pub mod objects;
pub mod pod_board;
pub mod record_index;
pub mod runtime_state;
pub mod start_failure;
pub mod throttle;
