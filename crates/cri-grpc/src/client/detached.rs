//! Calls that change an object. They continue in the runtime when the caller drops them: canceling
//! a start half-way can leave a process that the runtime never removes.

use std::{collections::VecDeque, future::Future, sync::Arc, time::Duration};

use parking_lot::Mutex;
use rubelet_cri::{Call, ChangedObject, CriError, CriErrorKind, CriResult};
use tokio::{sync::oneshot, task::AbortHandle, time::timeout};
use tonic::{Request, Response, Status};
use tracing::debug;

use super::{CallEnd, CriClient};
use crate::status::error_from;

/// Number of deadlines after which a call is canceled after all. A runtime whose network plugin
/// hangs then aborts, and releases the name that the next attempt needs.
const DETACHED_DEADLINE_FACTOR: u32 = 2;

/// Maximum number of calls without a caller; beyond that, the oldest is canceled.
const MAX_DETACHED: usize = 128;

/// Calls whose callers are gone. Dropping it cancels them.
#[derive(Debug, Default)]
pub(super) struct DetachedCalls(Mutex<VecDeque<AbortHandle>>);

impl DetachedCalls {
    fn add(&self, call: AbortHandle) {
        let mut calls = self.0.lock();
        calls.retain(|call| !call.is_finished());
        calls.push_back(call);
        if calls.len() > MAX_DETACHED
            && let Some(oldest) = calls.pop_front()
        {
            debug!("More than {MAX_DETACHED} calls without an answer, canceling the oldest");
            oldest.abort();
        }
    }
}

impl Drop for DetachedCalls {
    fn drop(&mut self) {
        for call in self.0.get_mut() {
            call.abort();
        }
    }
}

/// A call with a caller; detached when the caller drops its future.
struct AwaitedCall<'a> {
    call: Option<AbortHandle>,
    later: &'a DetachedCalls,
}

impl Drop for AwaitedCall<'_> {
    fn drop(&mut self) {
        if let Some(call) = self.call.take() {
            self.later.add(call);
        }
    }
}

impl CriClient {
    /// One RPC. The caller waits until `deadline`; the call continues after that.
    pub(super) async fn call_detachable<C, F>(
        &self,
        changed: ChangedObject,
        deadline: Duration,
        message: C,
        send: impl FnOnce(Request<C>) -> F,
    ) -> CriResult<C::Response>
    where
        C: Call,
        F: Future<Output = Result<Response<C::Response>, Status>> + Send + 'static,
    {
        let ended = CallEnd::new(C::NAME, self.observer.as_ref());
        let last = deadline.saturating_mul(DETACHED_DEADLINE_FACTOR);
        let late = |limit| CriError::new(C::NAME, CriErrorKind::DeadlineExceeded(limit), "");
        let mut request = Request::new(message);
        // The runtime also aborts the call, even if the cancellation never reaches it.
        request.set_timeout(last);
        let (call, observer) = (send(request), Arc::clone(&self.observer));
        let (answer, answered) = oneshot::channel();
        let task = tokio::spawn(async move {
            let result = match timeout(last, call).await {
                Ok(Ok(answer)) => Ok(answer.into_inner()),
                Ok(Err(status)) => Err(error_from(C::NAME, &status, Some(last))),
                Err(_) => Err(late(last)),
            };
            if let Err(result) = answer.send(result) {
                let outcome = result.map(drop).map_err(|error| {
                    debug!(call = C::NAME, ?changed, %error, "Call failed after its deadline");
                    error.kind
                });
                if outcome.is_ok() {
                    debug!(
                        call = C::NAME,
                        ?changed,
                        "Call was answered after its deadline"
                    );
                }
                observer.answered_late(C::NAME, &changed, outcome);
            }
        });
        let mut awaited = AwaitedCall {
            call: Some(task.abort_handle()),
            later: &self.detached,
        };
        let Ok(answer) = timeout(deadline, answered).await else {
            return ended.with(Err(late(deadline)));
        };
        awaited.call = None;
        // Without a response the process is about to exit.
        let canceled = || CriError::new(C::NAME, CriErrorKind::Canceled, "");
        ended.with(answer.unwrap_or_else(|_| Err(canceled())))
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    #[tokio::test]
    async fn the_oldest_detached_call_is_canceled_beyond_the_limit_and_all_with_the_client() {
        let calls = DetachedCalls::default();
        let mut tasks: VecDeque<_> = (0..=MAX_DETACHED)
            .map(|_| tokio::spawn(pending::<()>()))
            .collect();
        let ended = tokio::spawn(async {});
        let handle = ended.abort_handle();
        ended.await.unwrap();
        calls.add(handle);
        for task in &tasks {
            calls.add(task.abort_handle());
        }
        let oldest = tasks.pop_front().unwrap();
        assert!(oldest.await.unwrap_err().is_cancelled());
        tokio::task::yield_now().await;
        assert!(tasks.iter().all(|task| !task.is_finished()));
        drop(calls);
        for task in tasks {
            assert!(task.await.unwrap_err().is_cancelled());
        }
    }
}
