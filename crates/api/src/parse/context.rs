//! What the parser must know beside the manifest.

use jiff::Timestamp;
use rubelet_base::PodUid;

use crate::pod::PodSource;

/// What the parser must know beside the manifest.
#[derive(Debug, Clone)]
pub struct ParseContext<'a> {
    /// This node's name.
    pub node_name: &'a str,
    /// Where the pod came from.
    pub source: PodSource,
    /// The file or URL. Takes no part in any hash, so that a manifest may move.
    pub origin: &'a str,
    /// The UID of a running pod of the same name that was started by another kubelet, or before the
    /// UID rule changed. A UID in the manifest wins over it.
    pub adopted_uid: Option<PodUid>,
    /// When the pod was seen.
    pub now: Timestamp,
}
