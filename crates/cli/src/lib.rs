//! The user's commands: every command of the program `rubelet` that queries a running agent, or
//! needs none.
//!
//! [`CommandLine::parse`] reads what the user typed. `rubelet run` and `rubelet runtime serve` are
//! handed back to the program; all other commands run here ([`ClientCall::execute`]):
//!
//! ```
//! use rubelet_cli::CommandLine;
//!
//! let line = CommandLine::parse(["rubelet", "get", "pods"])?;
//! assert!(matches!(line, CommandLine::Client(_)));
//! let line = CommandLine::parse(["rubelet", "run", "--v=4"])?;
//! assert!(matches!(line, CommandLine::Run { flags } if flags == ["--v=4"]));
//! # Ok::<(), rubelet_cli::UsageError>(())
//! ```
//!
//! Data goes to stdout, errors and hints to stderr. Exit codes: 0 success, 1 error, 2 wrong usage.
//! There is one file for each command; requests to the agent go through its local socket
//! (`agent.rs`), `image` asks the runtime itself, and `net` opens its sockets in this process if
//! no pod is named.
//!
//! This crate never starts an agent or a container, never changes the host, and knows nothing of
//! the agent's tasks: everything that a command shows comes from the agent's socket API.

mod agent;
mod attach;
mod binary;
mod client;
mod command_line;
mod completion;
mod config;
mod containers;
mod cp;
mod debug;
mod delete;
mod describe;
mod doctor;
mod events;
mod exec;
mod failure;
mod get;
mod hint;
mod image;
mod logs;
mod net;
mod pod_watch;
mod port_forward;
mod print;
mod restart;
mod session;
mod shell;
mod signals;
mod size;
mod status;
mod streams;
mod target;
mod terminal;
mod top;
mod url;
mod version;
mod watch;
mod why;

#[cfg(test)]
mod tests;

pub use self::{
    binary::Binary,
    client::ClientCall,
    command_line::{CommandLine, UsageError},
    config::ConfigFiles,
};
