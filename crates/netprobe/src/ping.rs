//! Ping: echo requests to one target or to several.

pub mod answered;
pub mod driver;
pub mod event;
pub mod mtu;
pub mod mtu_driver;
pub mod options;
pub mod run;
pub mod text;

#[doc(inline)]
pub use self::{
    driver::{PingTarget, ping},
    event::PingEvent,
    mtu::MtuEvent,
    mtu_driver::search_mtu,
    options::{Fragmentation, PingOptions},
};
