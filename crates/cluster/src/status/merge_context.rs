//! The context of a merge of two statuses.

use jiff::Timestamp;
use rubelet_api::pod::PodSpec;

/// The context of a merge of two statuses.
#[derive(Debug, Clone, Copy)]
pub(super) struct MergeContext<'a> {
    /// The specification.
    pub(super) spec: &'a PodSpec,
    /// The API's copy is the mirror pod of a static pod.
    pub(super) mirror: bool,
    /// A container of the pod may still run.
    pub(super) running: bool,
    /// Wall time.
    pub(super) now: Timestamp,
}
