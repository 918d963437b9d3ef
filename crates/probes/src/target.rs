//! The target of a probe.

use rubelet_api::probe::TargetPort;

use crate::{report::ProbeFailure, words::quoted};

/// The target host: the one in the probe, or the pod.
///
/// # Errors
/// Neither the probe names a host nor does the pod have an address: an empty host would mean this
/// machine.
pub(crate) fn host<'a>(
    written: Option<&'a str>,
    default: &'a str,
) -> Result<&'a str, ProbeFailure> {
    match written.unwrap_or(default) {
        "" => Err(ProbeFailure::errored("the pod has no IP address")),
        host => Ok(host),
    }
}

/// The number of a port.
///
/// # Errors
/// The container has no port of that name, or the number is 0.
pub(crate) fn port(port: &TargetPort) -> Result<u16, ProbeFailure> {
    match port {
        TargetPort::Number(0) => Err(ProbeFailure::errored("invalid port number: 0")),
        TargetPort::Number(number) => Ok(*number),
        // The kubelet then parses the name as a number, and reports that error.
        TargetPort::Unknown(name) => Err(ProbeFailure::errored(format!(
            "strconv.Atoi: parsing {}: invalid syntax",
            quoted(name.as_bytes())
        ))),
    }
}
