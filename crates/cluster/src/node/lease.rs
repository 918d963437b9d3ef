//! The lease by which the cluster knows that the node is alive. Renewed by a task that does nothing
//! else, so that nothing on the node can delay it. It needs to know nothing but the node's name: the
//! node object only adds its owner.
//!
//! Source of the rules: `k8s.io/component-helpers/apimachinery/lease` of Kubernetes 1.36.

use std::{convert::Infallible, future::pending, time::Duration};

use jiff::{SignedDuration, Timestamp};
use rubelet_base::{Backoff, ErrorChain};
use rubelet_kube::ApiError;
use rubelet_node_plan::node_status::{NodeSettings, schedule::NodeRandom};
use rubelet_node_state::clock::Clock;
use serde_json::{Map, Value, json};
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until, timeout},
};
use tracing::{info, warn};

use super::{
    api::NodeApi,
    observed_node::{ObservedNode, change},
    warning_throttle::WarningThrottle,
};

/// The lease is renewed after a quarter of its duration, plus jitter.
const RENEWALS: u32 = 4;
const JITTER: f64 = 0.04;
/// Waits after failures.
const RETRY_FIRST: Duration = Duration::from_millis(200);
const RETRY_LONGEST: Duration = Duration::from_secs(7);
/// Immediate retries of a renewal that conflicts with another writer.
const CONFLICTS: usize = 5;
/// After this number of failures in a row, the last of them without a response, the connection is
/// opened again.
const FAILURES_TO_RECONNECT: u32 = 2;

/// Between the times of two renewals at least.
const LEAST_STEP: SignedDuration = SignedDuration::from_millis(1);

/// Time that creating a lease waits for the node object that owns it.
const FIRST_LOOK: Duration = Duration::from_secs(1);

/// Keeps the lease.
pub(super) struct LeaseTask<A> {
    api: A,
    name: Box<str>,
    duration: Duration,
    seen: watch::Sender<ObservedNode>,
    clock: Clock,
    chance: NodeRandom,
    /// The lease as the API server last gave it back.
    lease: Option<Value>,
}

/// Why a lease was not renewed.
enum LeaseError {
    /// The API server refused, or did not answer.
    Call(ApiError),
    /// The API server reports that there is no such node: the lease would never be
    /// garbage-collected.
    NoNode,
}

impl<A: NodeApi> LeaseTask<A> {
    pub(super) fn new(
        api: A,
        settings: &NodeSettings,
        seen: watch::Sender<ObservedNode>,
        clock: Clock,
    ) -> Self {
        Self {
            api,
            name: settings.name.clone(),
            duration: settings.lease_duration,
            seen,
            clock,
            chance: NodeRandom::new(&settings.name, 1),
            lease: None,
        }
    }

    /// Renews the lease forever.
    pub(super) async fn run(mut self) -> Infallible {
        let interval = self.duration / RENEWALS;
        let mut backoff = Backoff::new(RETRY_FIRST, RETRY_LONGEST);
        let mut failures = 0;
        let mut throttle = WarningThrottle::default();
        loop {
            let began = Instant::now();
            // The whole renewal, retries included, may take no longer than the interval.
            let renewed = timeout(interval, self.renew()).await;
            match renewed.unwrap_or(Err(LeaseError::Call(ApiError::TimedOut))) {
                Ok(()) => {
                    if failures > 0 {
                        info!(failures, "Renewed the node lease after failures");
                        // The node may have been marked unreachable meanwhile, and the watch may
                        // need a while to show that.
                        change(&self.seen, ObservedNode::mark_stale);
                    }
                    failures = 0;
                    backoff.reset();
                    throttle.reset();
                    let later = interval.mul_f64(1.0 + JITTER * self.chance.next_unit());
                    self.wait_until(began + later).await;
                }
                Err(LeaseError::NoNode) => self.wait_for_node().await,
                Err(LeaseError::Call(error)) => {
                    failures += 1;
                    let wait = backoff
                        .advance()
                        .max(error.retry_after().unwrap_or_default());
                    let text = ErrorChain(&error).to_string();
                    if throttle.is_due(&text) {
                        warn!(error = text, retry = ?wait, "Failed to update lease");
                    }
                    // No answer at all: the connection may be dead without any sign of it.
                    if failures % FAILURES_TO_RECONNECT == 0 && error.code().is_none() {
                        self.api.reconnect();
                    }
                    self.wait_for_another_try(wait).await;
                }
            }
        }
    }

    /// Renews once. What is written is always based on what the API server gave back last.
    async fn renew(&mut self) -> Result<(), LeaseError> {
        for _ in 0..CONFLICTS {
            let Some(base) = self.lease.take() else {
                match self.api.get_lease().await {
                    Ok(lease) => self.lease = Some(lease),
                    Err(error) if error.is_not_found() => return self.create().await,
                    Err(error) => return Err(LeaseError::Call(error)),
                }
                continue;
            };
            let renewed = self.stamped(base);
            match self.api.replace_lease(&renewed).await {
                Ok(lease) => {
                    self.lease = Some(lease);
                    return Ok(());
                }
                // Another client wrote it: read it and write again.
                Err(error) if error.is_conflict() => {}
                Err(error) if error.is_not_found() => return self.create().await,
                Err(error) => {
                    // It is perhaps done; then the next try meets a conflict.
                    self.lease = Some(renewed);
                    return Err(LeaseError::Call(error));
                }
            }
        }
        Err(LeaseError::Call(ApiError::TimedOut))
    }

    /// Makes a lease. It belongs to the node, so that it goes when the node goes; where the node can't
    /// be read it is made all the same, and gets its owner later.
    async fn create(&mut self) -> Result<(), LeaseError> {
        let answered = |seen: &ObservedNode| seen.absent || seen.node.is_some();
        // Make the lease even without an answer: the node would count as dead otherwise.
        let _ = timeout(FIRST_LOOK, self.seen.subscribe().wait_for(answered)).await;
        if self.seen.borrow().absent {
            return Err(LeaseError::NoNode);
        }
        let fresh = self.stamped(json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": { "name": self.name, "namespace": "kube-node-lease" },
            "spec": { "holderIdentity": self.name },
        }));
        match self.api.create_lease(&fresh).await {
            Ok(lease) => {
                self.lease = Some(lease);
                Ok(())
            }
            Err(error) => Err(LeaseError::Call(error)),
        }
    }

    /// The lease with the current time, its duration and its owner. Other fields that a client set
    /// stay, except nulls, which mean the same as absence and are never written.
    pub(super) fn stamped(&self, mut lease: Value) -> Value {
        drop_nulls(&mut lease);
        let mut lease = fields(lease);
        let mut spec = fields(lease.remove("spec").unwrap_or_default());
        if !spec.get("holderIdentity").is_some_and(Value::is_string) {
            spec.insert("holderIdentity".to_owned(), json!(self.name));
        }
        spec.insert(
            "leaseDurationSeconds".to_owned(),
            self.duration.as_secs().into(),
        );
        let last = spec.get("renewTime").and_then(Value::as_str);
        let last = last.and_then(|text| text.parse().ok());
        let time = renew_time(last, self.clock.now());
        spec.insert("renewTime".to_owned(), micro_time(time).into());
        lease.insert("spec".to_owned(), spec.into());
        let mut metadata = fields(lease.remove("metadata").unwrap_or_default());
        if let Some(uid) = self.uid()
            && !is_owned(&metadata, &uid)
        {
            let owner = json!([{
                "apiVersion": "v1",
                "kind": "Node",
                "name": self.name,
                "uid": uid,
            }]);
            metadata.insert("ownerReferences".to_owned(), owner);
        }
        lease.insert("metadata".to_owned(), metadata.into());
        lease.into()
    }

    fn uid(&self) -> Option<Box<str>> {
        let seen = self.seen.borrow();
        let uid = seen.node.as_ref().map(|node| node.metadata.uid.clone());
        uid.filter(|uid| !uid.is_empty())
    }

    /// Waits, but not when it turns out that the API server is there again.
    async fn wait_for_another_try(&self, wait: Duration) {
        let mut seen = self.seen.subscribe();
        let back = async {
            sleep(RETRY_FIRST.min(wait)).await;
            // The sender is this task's own.
            let _ = seen.changed().await;
        };
        tokio::select! {
            () = sleep(wait) => {}
            () = back => {}
        }
    }

    /// Waits for the next renewal, or until a lease without an owner can get one.
    async fn wait_until(&self, next: Instant) {
        let has_owner = |seen: &ObservedNode| {
            let node = seen.node.as_ref();
            let uid = node.map(|node| &*node.metadata.uid).unwrap_or_default();
            let metadata = self.lease.as_ref().map(|lease| &lease["metadata"]);
            let metadata = metadata.and_then(Value::as_object);
            uid.is_empty() || metadata.is_none_or(|metadata| is_owned(metadata, uid))
        };
        let mut seen = self.seen.subscribe();
        tokio::select! {
            () = sleep_until(next) => {}
            // The sender is this task's own.
            _ = seen.wait_for(|seen| !has_owner(seen)) => {}
        }
    }

    async fn wait_for_node(&self) {
        let known = |seen: &ObservedNode| !seen.absent;
        if self.seen.subscribe().wait_for(known).await.is_err() {
            // The agent stops.
            pending::<()>().await;
        }
    }
}

/// The time of a renewal. For the node controller a lease is renewed when its time is later than what it saw
/// last, so the time advances even where the node's clock was set back: otherwise the node would count as lost
/// until the clock is there again.
fn renew_time(last: Option<Timestamp>, now: Timestamp) -> Timestamp {
    let next = last.and_then(|last| last.checked_add(LEAST_STEP).ok());
    next.map_or(now, |next| next.max(now))
}

/// The fields of an object; none of what is no object.
fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// Removes what is null, all the way down.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => {
            items.retain(|item| !item.is_null());
            items.iter_mut().for_each(drop_nulls);
        }
        _ => {}
    }
}

/// Whether the lease is owned by the node, or by another owner that a client set.
fn is_owned(metadata: &Map<String, Value>, uid: &str) -> bool {
    let owners = metadata.get("ownerReferences").and_then(Value::as_array);
    owners.is_some_and(|owners| {
        let foreign = owners.iter().any(|owner| owner["kind"] != "Node");
        foreign || owners.iter().any(|owner| owner["uid"] == *uid)
    })
}

/// A time with microseconds, as leases have it.
fn micro_time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}
