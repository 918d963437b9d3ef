//! The client against an implementor of the traits, through a real unix socket.

mod errors;
mod hanging;
mod lifetime;
mod runtime;
mod sizes;
