//! Asks the kernel whether it takes the rules for what pods send.

use rubelet_base::ErrorChain;
use rubelet_host::netns;

use super::{names::Names, senders};

/// Why this kernel can't hold pods on the bridge to their own addresses; nothing where it can. It is
/// tried in a network namespace that is gone afterwards, so it takes root, and without root nothing is
/// told.
#[must_use]
pub fn missing_sender_rules() -> Option<String> {
    let netns = netns::create().ok()?;
    let made = netns::within(&netns, || {
        let names = Names::new("probe");
        senders::build(&names, &[]).commit(|| "make an nftables table of bridges".to_owned())
    });
    made.ok()?.err().map(|error| ErrorChain(&error).to_string())
}
