//! The address of the system's bus (D-Bus specification, "Server Addresses").

use std::{
    ffi::OsStr,
    fmt, io,
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
    path::PathBuf,
};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

/// Where the bus listens if the environment names no other address.
const DEFAULT: &str = "/run/dbus/system_bus_socket";
/// Variable of the environment with another address.
const VARIABLE: &str = "DBUS_SYSTEM_BUS_ADDRESS";

/// A unix socket on which a bus listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BusAddress {
    /// In the file system.
    Path(PathBuf),
    /// In the abstract name space of a network namespace.
    Abstract(Vec<u8>),
}

/// `DBUS_SYSTEM_BUS_ADDRESS` names no socket that can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} is {text:?}: only unix:path=... and unix:abstract=... are supported; correct or unset it",
    VARIABLE
)]
pub struct BusAddressError {
    text: String,
}

impl BusAddress {
    /// The system's bus, at the address in the environment of this process, if there is one.
    ///
    /// # Errors
    /// See [`BusAddressError`].
    pub fn of_system() -> Result<Self, BusAddressError> {
        Self::of_environment(std::env::var_os(VARIABLE).as_deref())
    }

    fn of_environment(value: Option<&OsStr>) -> Result<Self, BusAddressError> {
        let value = value.filter(|value| !value.is_empty());
        let Some(value) = value else {
            return Ok(Self::Path(DEFAULT.into()));
        };
        // A list: the first address that can be used.
        let mut addresses = value.as_bytes().split(|byte| *byte == b';');
        addresses.find_map(one).ok_or_else(|| BusAddressError {
            text: value.to_string_lossy().into_owned(),
        })
    }

    /// A connected socket that does not block.
    pub(super) fn connect(&self) -> io::Result<OwnedFd> {
        let address = match self {
            Self::Path(path) => SocketAddrUnix::new(path.as_path())?,
            Self::Abstract(name) => SocketAddrUnix::new_abstract_name(name)?,
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        connect(&socket, &address)?;
        Ok(socket)
    }
}

impl fmt::Display for BusAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::Abstract(name) => write!(f, "@{}", String::from_utf8_lossy(name)),
        }
    }
}

/// One address of a list, if it is a unix socket.
fn one(address: &[u8]) -> Option<BusAddress> {
    let pairs = address.strip_prefix(b"unix:")?;
    pairs.split(|byte| *byte == b',').find_map(|pair| {
        let at = pair.iter().position(|byte| *byte == b'=')?;
        let value = unescape(&pair[at + 1..]).filter(|value| !value.is_empty())?;
        match &pair[..at] {
            b"path" => Some(BusAddress::Path(OsStr::from_bytes(&value).into())),
            b"abstract" => Some(BusAddress::Abstract(value)),
            _ => None,
        }
    })
}

/// Resolves `%2c` and the like.
fn unescape(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.iter().copied();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let value = digit(rest.next()?)? * 16 + digit(rest.next()?)?;
            bytes.push(u8::try_from(value).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_names_the_socket_as_for_other_clients() {
        let path = |path: &str| Some(BusAddress::Path(path.into()));
        let rows = [
            ("", path(DEFAULT)),
            ("unix:path=/a/b", path("/a/b")),
            ("unix:path=/a%2cb%20c,guid=12", path("/a,b c")),
            ("unix:guid=12,path=/a", path("/a")),
            ("tcp:host=h,port=1;unix:path=/second", path("/second")),
            (
                "unix:abstract=/tmp/dbus-x",
                Some(BusAddress::Abstract(b"/tmp/dbus-x".to_vec())),
            ),
            ("tcp:host=h,port=1", None),
            ("unix:path=", None),
            ("unix:path=/a%2", None),
            ("unix:path=/a%zz", None),
            ("/a/b", None),
        ];
        for (text, expected) in rows {
            let found = BusAddress::of_environment(Some(OsStr::new(text)));
            assert_eq!(found.clone().ok(), expected, "{text}");
            if let Err(error) = found {
                let said = error.to_string();
                assert!(said.contains(VARIABLE) && said.contains(text), "{said}");
            }
        }
        assert_eq!(BusAddress::of_environment(None).ok(), path(DEFAULT));
    }
}
