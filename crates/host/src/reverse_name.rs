//! The name of an address, from the resolver of the machine.

use std::net::IpAddr;

/// The longest name that is asked for, with its terminating zero (`NI_MAXHOST`).
const LONGEST: usize = 1025;

/// The name that the resolver has for an address. Blocks for as long as the resolver does, which can
/// be many seconds.
///
/// The owner of the address controls the name: it is returned only if it consists of the
/// characters of host names.
#[must_use]
pub fn reverse_name(address: IpAddr) -> Option<String> {
    let mut buffer = [0_u8; LONGEST];
    if !get_name_info(&RawAddress::new(address), &mut buffer) {
        return None;
    }
    host_name(buffer.split(|byte| *byte == 0).next()?)
}

/// An address as the C library takes it.
enum RawAddress {
    V4(libc::sockaddr_in),
    V6(libc::sockaddr_in6),
}

impl RawAddress {
    fn new(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::V4(libc::sockaddr_in {
                sin_family: u16::try_from(libc::AF_INET).unwrap_or_default(),
                sin_port: 0,
                sin_addr: libc::in_addr {
                    s_addr: u32::from_ne_bytes(address.octets()),
                },
                sin_zero: [0; 8],
            }),
            IpAddr::V6(address) => Self::V6(libc::sockaddr_in6 {
                sin6_family: u16::try_from(libc::AF_INET6).unwrap_or_default(),
                sin6_port: 0,
                sin6_flowinfo: 0,
                sin6_addr: libc::in6_addr {
                    s6_addr: address.octets(),
                },
                sin6_scope_id: 0,
            }),
        }
    }
}

#[expect(unsafe_code, reason = "std resolves names only, not addresses")]
fn get_name_info(address: &RawAddress, buffer: &mut [u8]) -> bool {
    let (pointer, length): (*const libc::sockaddr, usize) = match address {
        RawAddress::V4(address) => ((&raw const *address).cast(), size_of_val(address)),
        RawAddress::V6(address) => ((&raw const *address).cast(), size_of_val(address)),
    };
    let length = u32::try_from(length).unwrap_or_default();
    let space = u32::try_from(buffer.len()).unwrap_or_default();
    // SAFETY: `pointer` is that of a socket address of `length` bytes that outlives the call, and the
    // function writes at most `space` bytes into `buffer`; no name of a service is asked for.
    let done = unsafe {
        libc::getnameinfo(
            pointer,
            length,
            buffer.as_mut_ptr().cast(),
            space,
            std::ptr::null_mut(),
            0,
            libc::NI_NAMEREQD,
        )
    };
    done == 0
}

/// The name as text, if all of its characters may be in a host name.
fn host_name(name: &[u8]) -> Option<String> {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._".contains(byte);
    (!name.is_empty() && name.iter().all(allowed))
        .then(|| String::from_utf8_lossy(name).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_other_characters_is_none() {
        assert_eq!(
            host_name(b"r1.example_x.org"),
            Some("r1.example_x.org".to_owned())
        );
        for name in [&b""[..], b"a b", b"\x1b[2J", b"a\nb", b"\xff"] {
            assert_eq!(host_name(name), None, "{name:?}");
        }
    }
}
