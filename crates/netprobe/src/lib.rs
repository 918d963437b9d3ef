//! Ping and trace: what is sent, what answers mean, and how results are shown.
//!
//! Decisions are pure and apart from sockets. [`packet`], [`stamp`], [`control`] and [`icmp_error`]
//! read and write bytes. [`ping::run`], [`ping::mtu`] and [`trace::run`] decide what to send and what
//! an answer means; they get the time as an argument. [`statistics`] counts. Effects are in
//! [`sockets`], [`echo_socket`], [`trace::prober`], [`clock`] and [`mod@wait`], and the drivers
//! [`ping::ping`] and [`trace::trace`] put both together. They report events, which are serde values;
//! [`ping::text`] and [`trace::text`] write them as ping, traceroute and mtr do. A [`mod@check`] asks
//! the usual questions about a network in their order, and a [`path`] shows where packets stop on
//! their way out of a pod. A [`request`] is a probe as a document, which another
//! process runs.
//!
//! Sockets are opened through [`sockets::OpenSocket`]: in this process's network namespace, or in
//! that of a descriptor. Everything that arrives is hostile: each length is checked, a reply counts
//! only if it carries the tag of its session, and a fixed number of datagrams is read at a time.
//!
//! This crate resolves no names, and knows nothing of pods.
//!
//! ```
//! use std::time::Duration;
//!
//! use rubelet_netprobe::{
//!     ping::{PingOptions, run::{ReplyOutcome, PingAction, PingRun, sequence_of}},
//!     stamp::SessionKey,
//! };
//!
//! let options = PingOptions { count: Some(1), ..PingOptions::default() };
//! let mut run = PingRun::new(options, SessionKey::new(7), Duration::ZERO);
//! assert_eq!(run.next(Duration::ZERO), PingAction::Send(0));
//! let mut data = Vec::new();
//! run.write_data(0, Duration::ZERO, &mut data);
//! run.on_sent(0, Duration::ZERO);
//! // The target sends the same data back.
//! let arrival = Duration::from_millis(3);
//! let answer = run.on_reply(sequence_of(0), &data, arrival);
//! assert!(matches!(answer, ReplyOutcome::Reply { rtt: Some(rtt), .. } if rtt == arrival));
//! assert_eq!(run.next(arrival), PingAction::Done);
//! ```

pub mod check;
pub mod clock;
pub mod control;
pub mod echo_socket;
pub mod icmp_error;
mod millis;
pub mod packet;
pub mod path;
pub mod ping;
pub mod request;
pub mod sockets;
pub mod stamp;
pub mod statistics;
pub mod trace;
pub mod wait;
