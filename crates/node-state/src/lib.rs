//! State of the node that the parts of the agent share: boards with the current state of pods,
//! events, operators' requests, the runtime's status, the traits for access to the API server,
//! metrics, the clock, and limits on concurrent calls. It runs no task and makes no call to a
//! runtime or an API server.
//!
//! The state of pods is published on boards, which hold current values and never overflow:
//!
//! ```
//! use rubelet_node_state::board::Board;
//!
//! let board = Board::new();
//! board.set("web", "Pending");
//! board.set("web", "Running");
//! let (version, changes) = board.since(0);
//! assert_eq!(changes.len(), 1, "a late reader only sees current values");
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
pub mod shutdown_state;
pub mod start_failure;
pub mod throttle;
