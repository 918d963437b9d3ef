//! Checks whether the kernel supports the sender rules.

use rubelet_base::ErrorChain;
use rubelet_host::netns;

use super::{names::Names, senders};

/// Why this kernel can't restrict pods on the bridge to their own addresses; `None` if it can.
/// Tried in a temporary network namespace, which needs root; `None` without root.
#[must_use]
pub fn missing_sender_rules() -> Option<String> {
    let netns = netns::create().ok()?;
    let made = netns::within(&netns, || {
        let names = Names::new("probe");
        senders::build(&names, &[])
            .commit(|| "create an nftables table of the family bridge".to_owned())
    });
    made.ok()?.err().map(|error| ErrorChain(&error).to_string())
}
