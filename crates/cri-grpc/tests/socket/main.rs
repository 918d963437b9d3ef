//! The client against an implementor of the traits, through a real unix socket.

mod errors;
mod events;
mod foreign;
mod hanging;
mod lifetime;
mod loading;
mod pieces;
mod runtime;
mod sizes;
