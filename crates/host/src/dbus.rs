//! The D-Bus protocol, as far as the agent uses it: messages, the address of the system's bus, and a
//! connection for a tokio task that receives file descriptors.

pub(crate) mod address;
pub(crate) mod client;
pub(crate) mod message;
pub(crate) mod wire;

pub use self::{
    address::{BusAddress, BusAddressError},
    client::BusError,
};
