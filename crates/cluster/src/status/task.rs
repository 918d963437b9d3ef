//! The task: follows the boards, takes pods from the line, makes their calls.

use std::{collections::HashMap, future::Future, pin::Pin, sync::Arc, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};
use rubelet_api::{annotations::CONFIG_HASH, pod::PodSource};
use rubelet_base::{Backoff, PodName, PodUid};
use rubelet_node_state::{
    clock::Clock,
    pod_board::{PodBoard, PodEntry},
};
use tokio::{
    sync::watch,
    task::yield_now,
    time::{Instant, sleep_until},
};
use tracing::{debug, info, warn};

use super::{
    StatusContext, StatusMetrics,
    decide::{StatusAction, decide},
    reopen_pause::ReopenPause,
    schedule::{CallOutcome, Schedule},
    send::StatusApi,
    sync_state::PodSyncState,
};
use crate::{
    call_error::{CallError, CallErrorKind},
    source::{ApiPod, ApiPods},
};

/// Time for the watch to report a patch, before it is opened again and the status is compared with its copy: the watch may
/// have become silent, on a connection that lives, or the API server was restored from an older state.
const WATCH_LAG_INITIAL: Duration = Duration::from_secs(30);
const WATCH_LAG_MAX: Duration = Duration::from_secs(600);
/// Minimum interval between writes that only revert another client's change of the status.
const RECONCILE: Duration = Duration::from_secs(10);
/// Largest number of pods handled before the task yields.
const MAX_PODS_AT_A_TIME: usize = 16;
/// Number of removed pods after which they are forgotten.
const MAX_STALE_PODS: usize = 32;

/// Sends the statuses of all pods to the API server.
pub(super) struct StatusTask<A> {
    client: A,
    board: Arc<PodBoard>,
    api: Arc<ApiPods>,
    context: watch::Receiver<StatusContext>,
    clock: Clock,
    metrics: Arc<dyn StatusMetrics>,
    schedule: Schedule,
    pods: HashMap<PodUid, TrackedPod>,
    /// Static pods and mirror pods find each other by name.
    static_pods: HashMap<PodName, PodUid>,
    mirrors: HashMap<PodName, PodUid>,
    /// The versions of the boards that were read.
    seen_board: u64,
    seen_api: u64,
    calls: FuturesUnordered<Call>,
    reopen_pause: ReopenPause,
}

type Call = Pin<Box<dyn Future<Output = FinishedCall> + Send>>;

/// The task's state of one pod of the board.
struct TrackedPod {
    /// Version of its entry.
    version: u64,
    /// The entry changed and was not sent since then.
    news: bool,
    /// When the first of these changes came, if there was a copy to compare with.
    since: Option<Instant>,
    known: PodSyncState,
    watch_lag: Backoff,
    /// The time of the last write that only reverted another client's change.
    reconciled: Option<Instant>,
    /// The last logged warning.
    last_warning: String,
}

/// Whether a mirror pod shows this pod, and not an earlier pod that this one replaced.
fn shows(mirror: &ApiPod, entry: &PodEntry) -> bool {
    let hash = entry.pod.annotations.get(CONFIG_HASH).map(|hash| &**hash);
    entry.history.replaced.is_none() || mirror.config_hash.as_deref() == hash
}

/// A call that ended.
struct FinishedCall {
    uid: PodUid,
    copy: Arc<ApiPod>,
    since: Option<Instant>,
    sent: CallResult,
}

enum CallResult {
    Patch {
        answer: Result<Box<str>, CallError>,
        status: Arc<str>,
        version: u64,
    },
    Delete(Result<(), CallError>),
}

impl<A: StatusApi> StatusTask<A> {
    pub(super) fn new(
        client: A,
        board: Arc<PodBoard>,
        api: Arc<ApiPods>,
        context: watch::Receiver<StatusContext>,
        clock: Clock,
        metrics: Arc<dyn StatusMetrics>,
        at_once: usize,
    ) -> Self {
        Self {
            client,
            board,
            api,
            context,
            clock,
            metrics,
            schedule: Schedule::new(at_once),
            pods: HashMap::new(),
            static_pods: HashMap::new(),
            mirrors: HashMap::new(),
            seen_board: 0,
            seen_api: 0,
            calls: FuturesUnordered::new(),
            reopen_pause: ReopenPause::new(WATCH_LAG_INITIAL, WATCH_LAG_MAX),
        }
    }

    pub(super) async fn run(mut self) {
        let (mut board, mut api) = (self.board.versions(), self.api.versions());
        let mut context = self.context.clone();
        let mut context_lives = true;
        self.read_board();
        self.read_api();
        loop {
            let now = Instant::now();
            let mut handled = 0;
            while handled < MAX_PODS_AT_A_TIME
                && let Some(uid) = self.schedule.next(now)
            {
                self.send_next(&uid, now);
                handled += 1;
            }
            let wake = self.schedule.wake_at();
            // Cancel safety: watch receivers keep what was not seen, calls stay in their set.
            tokio::select! {
                changed = board.changed() => match changed {
                    Ok(()) => self.read_board(),
                    Err(_) => return,
                },
                changed = api.changed() => match changed {
                    Ok(()) => self.read_api(),
                    Err(_) => return,
                },
                changed = context.changed(), if context_lives => {
                    context_lives = changed.is_ok();
                    context.mark_unchanged();
                    self.read_context();
                }
                Some(done) = self.calls.next(), if !self.calls.is_empty() => self.ended(done),
                () = sleep_until(wake.unwrap_or(now)), if wake.is_some() => {}
                // Between two batches the boards are read.
                () = yield_now(), if handled == MAX_PODS_AT_A_TIME => {}
            }
        }
    }

    /// News of the node.
    fn read_board(&mut self) {
        let now = Instant::now();
        let (version, changes) = self.board.since(self.seen_board);
        self.seen_board = version;
        for (uid, version, entry) in changes {
            if entry.pod.source != PodSource::Api {
                self.static_pods.insert(entry.pod.name.clone(), uid.clone());
            }
            let pod = self.pods.entry(uid.clone()).or_insert_with(|| TrackedPod {
                version: 0,
                news: true,
                since: None,
                known: PodSyncState::default(),
                watch_lag: Backoff::new(WATCH_LAG_INITIAL, WATCH_LAG_MAX),
                reconciled: None,
                last_warning: String::new(),
            });
            pod.version = version;
            pod.news = true;
            // The oldest change that was not sent: several of them go out in one patch.
            pod.since.get_or_insert(now);
            self.schedule.changed(&uid);
        }
        // Not at each removal, as this passes over all pods.
        if self.pods.len() > self.board.len() + MAX_STALE_PODS {
            let board = &self.board;
            self.pods.retain(|uid, _| board.get(uid).is_some());
            let pods = &self.pods;
            self.static_pods.retain(|_, uid| pods.contains_key(uid));
            self.schedule.retain(|uid| pods.contains_key(uid));
        }
    }

    /// News of the API server.
    fn read_api(&mut self) {
        let now = Instant::now();
        let (version, changes) = self.api.since(self.seen_api);
        self.seen_api = version;
        // The watch has reported something, so the API server may answer calls, too.
        self.schedule.may_be_back(now);
        for (uid, _, copy) in changes {
            // A mirror pod may come before the static pod that it shows, which then finds it by its
            // name when it comes.
            let of = if copy.mirror.is_some() {
                self.mirrors.insert(copy.name.clone(), uid);
                self.static_pods.get(&copy.name).cloned()
            } else {
                Some(uid)
            };
            let Some(of) = of else { continue };
            let Some(pod) = self.pods.get_mut(&of) else {
                continue;
            };
            pod.known.settle(&copy);
            if !pod.known.waits_for_watch(&copy) {
                pod.watch_lag.reset();
            }
            self.schedule.changed(&of);
        }
        let api = &self.api;
        self.mirrors.retain(|_, uid| api.get(uid).is_some());
    }

    /// All statuses show something else.
    fn read_context(&mut self) {
        for (uid, pod) in &mut self.pods {
            pod.known.context_changed();
            pod.news = true;
            self.schedule.changed(uid);
        }
    }

    /// The copy that shows this pod.
    fn copy_of(&self, uid: &PodUid, entry: &PodEntry) -> Option<Arc<ApiPod>> {
        if entry.pod.source == PodSource::Api {
            return self.api.get(uid);
        }
        let mirror = self.api.get(self.mirrors.get(&entry.pod.name)?)?;
        shows(&mirror, entry).then_some(mirror)
    }

    /// Only now is it decided what is sent, and whether anything is: the pod may have changed several
    /// times, or back, since it was queued.
    fn send_next(&mut self, uid: &PodUid, now: Instant) {
        let end = match self.start_call(uid, now) {
            Some(call) => {
                self.calls.push(call);
                return;
            }
            None => CallOutcome::Done,
        };
        self.schedule.ended(uid, end, now);
        self.look_again(uid, now);
    }

    /// Makes the call that the pod needs; `None` if it needs none now.
    fn start_call(&mut self, uid: &PodUid, now: Instant) -> Option<Call> {
        let entry = self.board.get(uid)?;
        let copy = self.copy_of(uid, &entry);
        let pod = self.pods.get_mut(uid)?;
        let Some(copy) = copy else {
            pod.since = None;
            return None;
        };
        // Noted with the answer. A change during the call has another version, and is sent next.
        let version = pod.version;
        let context = self.context.borrow().clone();
        let wall = self.clock.now();
        match decide(&entry, version, &copy, &pod.known, &context, wall) {
            StatusAction::Nothing => {
                pod.news = false;
                pod.since = None;
                None
            }
            StatusAction::Patch { body, status } => {
                // Without news of this node, another client wrote the difference.
                if !std::mem::take(&mut pod.news) {
                    if pod.reconciled.is_some_and(|last| now < last + RECONCILE) {
                        return None;
                    }
                    pod.reconciled = Some(now);
                }
                let since = pod.since.take();
                if let Some(since) = since {
                    self.metrics.sent(now - since);
                }
                debug!(pod = %copy.name, uid = %copy.uid, "Patching pod status");
                let call = self.client.patch(&copy.name, body);
                let uid = uid.clone();
                Some(Box::pin(async move {
                    let sent = CallResult::Patch {
                        answer: call.await,
                        status,
                        version,
                    };
                    FinishedCall {
                        uid,
                        copy,
                        since,
                        sent,
                    }
                }))
            }
            StatusAction::Delete => {
                let call = self.client.delete(&copy.name, &copy.uid);
                let uid = uid.clone();
                Some(Box::pin(async move {
                    let sent = CallResult::Delete(call.await);
                    FinishedCall {
                        uid,
                        copy,
                        since: None,
                        sent,
                    }
                }))
            }
        }
    }

    fn ended(&mut self, done: FinishedCall) {
        let now = Instant::now();
        let FinishedCall {
            uid,
            copy,
            since,
            sent,
        } = done;
        let answer = match sent {
            CallResult::Patch {
                answer: Ok(after),
                status,
                version,
            } => {
                if let Some(since) = since {
                    self.metrics.synced(now - since);
                }
                if let Some(pod) = self.pods.get_mut(&uid) {
                    pod.known.patched(&copy, &after, status, version);
                }
                Ok(())
            }
            CallResult::Delete(Ok(())) => {
                info!(pod = %copy.name, uid = %copy.uid, "Pod fully terminated and removed from the API server");
                if let Some(pod) = self.pods.get_mut(&uid) {
                    pod.known.deleted(&copy.uid);
                }
                Ok(())
            }
            CallResult::Patch {
                answer: Err(error), ..
            }
            | CallResult::Delete(Err(error)) => Err(error),
        };
        let end = match answer {
            Ok(()) => {
                if let Some(pod) = self.pods.get_mut(&uid) {
                    pod.last_warning = String::new();
                }
                CallOutcome::Done
            }
            Err(error) => self.failed(&uid, &copy, since, &error),
        };
        // A refusal is an answer, too.
        if end != CallOutcome::Away && self.schedule.answered() {
            info!("The API server is reachable again; sending pending pod statuses");
        }
        self.schedule.ended(&uid, end, now);
        self.look_again(&uid, now);
    }

    fn failed(
        &mut self,
        uid: &PodUid,
        copy: &ApiPod,
        since: Option<Instant>,
        error: &CallError,
    ) -> CallOutcome {
        let end = match error.kind {
            CallErrorKind::NotFound | CallErrorKind::OtherUid | CallErrorKind::AlreadyExists => {
                debug!(pod = %copy.name, uid = %copy.uid, %error, "The pod no longer exists at the API server");
                // The watch is behind and will report it. Until then the same call would fail again.
                if let Some(pod) = self.pods.get_mut(uid) {
                    pod.known.dropped(copy);
                }
                return CallOutcome::Done;
            }
            CallErrorKind::Unreachable => {
                if !self.schedule.is_away() {
                    warn!(%error, "Cannot update pod statuses: the API server is unreachable; the latest will be sent when it is back");
                }
                CallOutcome::Away
            }
            CallErrorKind::Later(wait) => CallOutcome::Later(wait),
            CallErrorKind::Forbidden | CallErrorKind::Invalid => CallOutcome::Refused,
        };
        if let Some(pod) = self.pods.get_mut(uid) {
            // It waits on: what was sent is not there.
            pod.news = true;
            pod.since = pod.since.into_iter().chain(since).min();
            if end != CallOutcome::Away && pod.last_warning != error.text {
                warn!(pod = %copy.name, uid = %copy.uid, %error, "Failed to update status for pod");
                pod.last_warning = error.text.clone();
            }
        }
        end
    }

    /// Once for all pods that wait for the watch.
    fn reopen_watch(&mut self, now: Instant) {
        if !self.reopen_pause.is_over(now) {
            return;
        }
        info!(
            "The API server accepted a pod status but its watch does not report it; opening the watch again"
        );
        self.client.reopen_watch();
    }

    /// Schedules the checks that come without a change.
    fn look_again(&mut self, uid: &PodUid, now: Instant) {
        let Some(entry) = self.board.get(uid) else {
            return;
        };
        let Some(copy) = self.copy_of(uid, &entry) else {
            return;
        };
        let Some(pod) = self.pods.get_mut(uid) else {
            return;
        };
        let reconcile = pod.reconciled.map(|last| last + RECONCILE);
        if let Some(at) = reconcile.filter(|at| *at > now) {
            self.schedule.look_again(uid, at);
        }
        if pod.known.waits_for_watch(&copy) {
            match pod.known.recheck_at {
                Some(at) if at <= now => {
                    // The next comparison is with what the watch reports.
                    pod.known.forget_acknowledged();
                    self.schedule.changed(uid);
                    self.reopen_watch(now);
                }
                Some(at) => self.schedule.look_again(uid, at),
                None => {
                    let at = now + pod.watch_lag.advance();
                    pod.known.recheck_at = Some(at);
                    self.schedule.look_again(uid, at);
                }
            }
        }
    }
}
