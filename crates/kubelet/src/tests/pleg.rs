//! What the node learns of its containers, and when, whatever happens to the events that should
//! tell it.

mod absent;
mod clocks;
mod echoes;
mod ends;
mod floods;
mod health;
mod starts;
mod told;
