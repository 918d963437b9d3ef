//! The task: compares, makes the calls one after the other, waits for the watch to report them.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use rubelet_base::{Backoff, PodName, PodUid};
use rubelet_node_state::pod_board::PodBoard;
use rubelet_sources::desired::Desired;
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};
use tracing::{debug, info, warn};

use super::{
    body::body,
    decide::{MirrorAction, decide},
    send::MirrorApi,
};
use crate::{
    call_error::{CallError, CallErrorKind},
    source::ApiPods,
};

/// Waits after calls that failed.
const RETRY_INITIAL: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(300);
/// Time that the watch may lag behind a call before the call is repeated.
const WATCH_LAG: Duration = Duration::from_secs(30);
/// Changes that come together are handled together.
const PAUSE: Duration = Duration::from_millis(20);

/// The node, as the owner of mirror pods.
pub(super) struct OwnerNode {
    pub(super) name: Arc<str>,
    pub(super) uid: watch::Receiver<Option<Arc<str>>>,
}

/// The pods to run.
pub(super) struct MirrorSources {
    /// Pods of manifests.
    pub(super) desired: watch::Receiver<Arc<Desired>>,
    /// Pods of the API server; ready when all are on the board.
    pub(super) listed: watch::Receiver<Arc<Desired>>,
}

/// Keeps mirror pods.
pub(super) struct MirrorTask<A> {
    client: A,
    node: OwnerNode,
    wanted: MirrorSources,
    board: Arc<PodBoard>,
    api: Arc<ApiPods>,
    names: BTreeMap<PodName, NameState>,
}

/// The calls that were tried for one name.
struct NameState {
    backoff: Backoff,
    not_before: Option<Instant>,
    expected: Option<ExpectedChange>,
    last_warning: String,
}

/// A change that the watch has not reported yet.
struct ExpectedChange {
    uid: PodUid,
    appears: bool,
    until: Instant,
}

impl<A: MirrorApi> MirrorTask<A> {
    pub(super) fn new(
        client: A,
        node: OwnerNode,
        wanted: MirrorSources,
        board: Arc<PodBoard>,
        api: Arc<ApiPods>,
    ) -> Self {
        Self {
            client,
            node,
            wanted,
            board,
            api,
            names: BTreeMap::new(),
        }
    }

    pub(super) async fn run(mut self) {
        let mut listed = self.wanted.listed.clone();
        // Before the first list, mirror pods that exist would look like missing ones.
        if listed
            .wait_for(|desired| desired.sources_ready())
            .await
            .is_err()
        {
            return;
        }
        let (mut board, mut api) = (self.board.versions(), self.api.versions());
        let (mut desired, mut uid) = (self.wanted.desired.clone(), self.node.uid.clone());
        let (mut sources_live, mut node_lives) = (true, true);
        loop {
            // Before the round reads them: a change during it leads to another round.
            board.mark_unchanged();
            api.mark_unchanged();
            desired.mark_unchanged();
            uid.mark_unchanged();
            let wake = self.round().await;
            sleep(PAUSE).await;
            // Cancel safety: receivers keep what was not seen.
            tokio::select! {
                Ok(()) = board.changed() => {}
                Ok(()) = api.changed() => {}
                changed = desired.changed(), if sources_live => sources_live = changed.is_ok(),
                changed = uid.changed(), if node_lives => node_lives = changed.is_ok(),
                () = sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => {}
                else => return,
            }
        }
    }

    /// Does what can be done now; returns when to check again even if nothing changes.
    async fn round(&mut self) -> Option<Instant> {
        let desired = Arc::clone(&self.wanted.desired.borrow());
        let board: Vec<_> = self.board.list().into_iter().map(|(.., one)| one).collect();
        let copies: Vec<_> = self.api.list().into_iter().map(|(.., one)| one).collect();
        let steps = decide(&desired, &board, &copies);
        self.names.retain(|name, _| steps.contains_key(name));
        for (name, step) in steps {
            let now = Instant::now();
            let api = &self.api;
            let state = self.names.entry(name.clone()).or_insert_with(|| NameState {
                backoff: Backoff::new(RETRY_INITIAL, RETRY_MAX),
                not_before: None,
                expected: None,
                last_warning: String::new(),
            });
            state.expected = state.expected.take().filter(|expected| {
                let confirmed = api.get(&expected.uid).is_some() == expected.appears;
                !confirmed && expected.until > now
            });
            // Until the watch shows the last call, the comparison would repeat it.
            let waits = state.not_before.is_some_and(|at| at > now) || state.expected.is_some();
            if !waits && !self.apply(&name, step).await {
                // The API server is away: the others would meet the same.
                break;
            }
        }
        let states = self.names.values();
        let times = states.flat_map(|state| {
            let expected = state.expected.as_ref().map(|expected| expected.until);
            // Both have to pass.
            state.not_before.into_iter().chain(expected).max()
        });
        let now = Instant::now();
        times.filter(|at| *at > now).min()
    }

    /// Makes the call of a step. False if the API server can't be reached.
    async fn apply(&mut self, name: &PodName, step: MirrorAction) -> bool {
        let answer = match &step {
            MirrorAction::Create(pod) => {
                let node_uid = self.node.uid.borrow().clone();
                let Some(node_uid) = node_uid else {
                    debug!(pod = %name, "Not creating a mirror pod: the node is not registered");
                    return true;
                };
                let body = body(pod, &self.node.name, &node_uid);
                let created = self.client.create(&name.namespace, body).await;
                created.map(|uid| (uid, true))
            }
            MirrorAction::Delete(copy, _) => {
                let deleted = self.client.delete(&copy.name, &copy.uid).await;
                match deleted {
                    // It is gone, and the watch has not reported that yet.
                    Err(error)
                        if matches!(
                            error.kind,
                            CallErrorKind::NotFound | CallErrorKind::OtherUid
                        ) =>
                    {
                        Ok((copy.uid.clone(), false))
                    }
                    other => other.map(|()| (copy.uid.clone(), false)),
                }
            }
            MirrorAction::Blocked(pod, other) => Err(CallError {
                kind: CallErrorKind::AlreadyExists,
                text: blocked(&pod.name, Some(&other.uid)),
            }),
        };
        let now = Instant::now();
        let Some(state) = self.names.get_mut(name) else {
            return true;
        };
        match answer {
            Ok((uid, appears)) => {
                match &step {
                    MirrorAction::Create(pod) => {
                        info!(pod = %name, static_uid = %pod.uid, uid = %uid, "Created a mirror pod");
                    }
                    MirrorAction::Delete(_, why) => {
                        info!(pod = %name, uid = %uid, why = why.as_str(), "Deleted a mirror pod");
                    }
                    MirrorAction::Blocked(..) => {}
                }
                state.backoff.reset();
                state.not_before = None;
                state.last_warning = String::new();
                let until = now + WATCH_LAG;
                state.expected = Some(ExpectedChange {
                    uid,
                    appears,
                    until,
                });
                true
            }
            Err(error) => {
                let mut wait = state.backoff.advance();
                if let CallErrorKind::Later(Some(least)) = error.kind {
                    wait = wait.max(least);
                }
                state.not_before = Some(now + wait);
                let text = match (&step, error.kind) {
                    (MirrorAction::Create(pod), CallErrorKind::AlreadyExists) => {
                        blocked(&pod.name, None)
                    }
                    _ => error.text,
                };
                if state.last_warning != text {
                    let failed = match step {
                        MirrorAction::Delete(..) => "Failed deleting a mirror pod",
                        MirrorAction::Create(_) | MirrorAction::Blocked(..) => {
                            "Failed creating a mirror pod"
                        }
                    };
                    warn!(pod = %name, error = text, "{failed}");
                    state.last_warning = text;
                }
                error.kind != CallErrorKind::Unreachable
            }
        }
    }
}

/// A pod of the same name that is no mirror pod.
fn blocked(name: &PodName, uid: Option<&PodUid>) -> String {
    let of = uid.map_or_else(String::new, |uid| format!(" with UID {uid}"));
    format!(
        "the API server has another pod {name}{of}, which is not the mirror pod of this \
         node's static pod; the static pod keeps running, but the cluster does not see it until the \
         other pod is deleted or the manifest gets another name"
    )
}
