//! Follows the watch of the node's own object.

use std::convert::Infallible;

use rubelet_kube::{Change, Watcher};
use rubelet_node_plan::node_status::object::Node;
use tokio::sync::watch;

use super::observed_node::{ObservedNode, change};

/// Takes in what the watch shows, forever.
pub(super) async fn follow(
    mut watcher: Watcher<Node>,
    seen: watch::Sender<ObservedNode>,
) -> Infallible {
    loop {
        let next = watcher.next().await;
        change(&seen, |seen| take(seen, next));
    }
}

/// Takes in one change.
pub(super) fn take(seen: &mut ObservedNode, next: Change<Node>) {
    match next {
        Change::Listed(nodes) => match nodes.into_iter().next() {
            Some(node) => seen.applied(node),
            None => seen.unlisted(),
        },
        Change::Applied(node) => seen.applied(node),
        Change::Deleted(last) => seen.deleted(&last),
    }
}
