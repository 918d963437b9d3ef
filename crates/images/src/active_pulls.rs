//! The pulls in progress, which a store knows so that callers share them.

use std::{collections::HashMap, sync::Weak};

use futures_util::future::{BoxFuture, WeakShared};
use parking_lot::Mutex;

use crate::{
    Digest, ImageId, Platform, PullError, Reference,
    registry::{OfferedCredentials, Transport},
};

/// The current pulls.
#[derive(Default)]
pub(crate) struct ActivePulls {
    pub(crate) current: Mutex<HashMap<PullKey, WeakShared<PullFuture>>>,
    /// A lock per layer: only one pull downloads it at a time.
    pub(crate) layers: Mutex<HashMap<Digest, Weak<tokio::sync::Mutex<()>>>>,
    pub(crate) transport: Mutex<Weak<Transport>>,
}

pub(crate) type PullKey = (Reference, OfferedCredentials, Platform);
pub(crate) type PullFuture = BoxFuture<'static, Result<ImageId, PullError>>;
