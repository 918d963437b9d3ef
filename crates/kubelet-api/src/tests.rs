//! The port as clients see it: real TLS over real TCP, with certificates of a test's own authority.

mod access;
mod audit;
mod authority;
mod cut;
mod endpoints;
mod flood;
mod http2;
mod limits;
mod logs;
mod server;
mod sessions;
mod smuggling;
mod tls;
