//! Whom a probe asks.

use rubelet_api::probe::TargetPort;

use crate::{report::Trouble, words::quoted};

/// The host that is asked: the one that is written, or the pod.
///
/// # Errors
/// Neither the probe names a host nor does the pod have an address: to connect to no host at all
/// would be to connect to this machine.
pub(crate) fn host<'a>(written: Option<&'a str>, default: &'a str) -> Result<&'a str, Trouble> {
    match written.unwrap_or(default) {
        "" => Err(Trouble::errored("the pod has no IP address")),
        host => Ok(host),
    }
}

/// The number of a port.
///
/// # Errors
/// The container has no port of that name, or the number is 0.
pub(crate) fn port(port: &TargetPort) -> Result<u16, Trouble> {
    match port {
        TargetPort::Number(0) => Err(Trouble::errored("invalid port number: 0")),
        TargetPort::Number(number) => Ok(*number),
        // The kubelet then takes the name for a number, and says why it is none.
        TargetPort::Unknown(name) => Err(Trouble::errored(format!(
            "strconv.Atoi: parsing {}: invalid syntax",
            quoted(name.as_bytes())
        ))),
    }
}
