//! Programs at an interface that see its packets.

use super::{
    NetlinkError, RouteSocket, link,
    message::{self, Messages},
};

const IFLA_XDP: u16 = 43;
const IFLA_XDP_ATTACHED: u16 = 2;
/// The places of classifiers: `ffff:fff2` and `ffff:fff3` of `clsact`; `ingress` takes any.
const PLACES: [u32; 2] = [0xffff_fff2, 0xffff_fff3];

impl RouteSocket {
    /// Whether the interface with this index has an XDP program.
    ///
    /// # Errors
    /// The kernel returns an error.
    pub(crate) fn has_xdp(&mut self, index: u32) -> Result<bool, NetlinkError> {
        let mut request = Messages::default();
        request.begin(libc::RTM_GETLINK, 1, &link::header(index, 0, 0));
        let what = "look for XDP programs";
        self.socket.get(&request, what, |item| {
            let attached = item
                .get(16..)
                .and_then(|rest| message::attribute(rest, IFLA_XDP))
                .and_then(|xdp| message::attribute(xdp, IFLA_XDP_ATTACHED));
            attached.is_some_and(|mode| mode != [0])
        })
    }

    /// Whether the interface with this index has classifiers of tc.
    ///
    /// # Errors
    /// The kernel returns an error, for lack of a scheduler for example.
    pub(crate) fn has_classifiers(&mut self, index: u32) -> Result<bool, NetlinkError> {
        let mut found = false;
        for place in PLACES {
            let what = "list the classifiers";
            let header = header(index, place);
            self.socket
                .dump(libc::RTM_GETTFILTER, &header, what, |_| found = true)?;
        }
        Ok(found)
    }
}

/// `struct tcmsg`
fn header(link: u32, parent: u32) -> [u8; 20] {
    let mut header = [0; 20];
    header[4..8].copy_from_slice(&link.to_ne_bytes());
    header[12..16].copy_from_slice(&parent.to_ne_bytes());
    header
}
