//! Calls that change something. They go on in the runtime when nobody waits for them any more: a start
//! that is broken off half-way can leave a process that the runtime never removes again.

use std::{
    collections::VecDeque,
    future::Future,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rubelet_cri::{Call, Changed, CriError, CriErrorKind, CriResult};
use tokio::{sync::oneshot, task::AbortHandle, time::timeout};
use tonic::{Request, Response, Status};
use tracing::debug;

use super::{CallEnd, CriClient};
use crate::status::error_from;

/// So many times its deadline a call may take before it is broken off after all. A runtime whose
/// network plugin hangs gives up then, and lets go of the name that the next try needs.
const PATIENCE: u32 = 2;

/// So many calls that nobody waits for go on at the same time; of more, the oldest is broken off.
const AT_MOST: usize = 128;

/// Calls that nobody waits for any more. They end with it.
#[derive(Debug, Default)]
pub(super) struct Unattended(Mutex<VecDeque<AbortHandle>>);

impl Unattended {
    fn add(&self, call: AbortHandle) {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        calls.retain(|call| !call.is_finished());
        calls.push_back(call);
        if calls.len() > AT_MOST
            && let Some(oldest) = calls.pop_front()
        {
            debug!("Too many calls of the runtime are not answered; the oldest is broken off");
            oldest.abort();
        }
    }
}

impl Drop for Unattended {
    fn drop(&mut self) {
        let calls = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        for call in calls {
            call.abort();
        }
    }
}

/// A call that somebody waits for, until that one goes away.
struct Attended<'a> {
    call: Option<AbortHandle>,
    later: &'a Unattended,
}

impl Drop for Attended<'_> {
    fn drop(&mut self) {
        if let Some(call) = self.call.take() {
            self.later.add(call);
        }
    }
}

impl CriClient {
    /// One RPC that is waited for until `deadline`, and goes on after that.
    pub(super) async fn lasting<C, F>(
        &self,
        changed: Changed,
        deadline: Duration,
        message: C,
        send: impl FnOnce(Request<C>) -> F,
    ) -> CriResult<C::Response>
    where
        C: Call,
        F: Future<Output = Result<Response<C::Response>, Status>> + Send + 'static,
    {
        let ended = CallEnd::new(C::NAME, self.observer.as_ref());
        let last = deadline.saturating_mul(PATIENCE);
        let late = |limit| CriError::new(C::NAME, CriErrorKind::DeadlineExceeded(limit), "");
        let mut request = Request::new(message);
        // So that the runtime gives up too, even if our cancelling never reaches it.
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
                    debug!(call = C::NAME, ?changed, %error, "A call failed late");
                    error.kind
                });
                if outcome.is_ok() {
                    debug!(call = C::NAME, ?changed, "A call was answered late");
                }
                observer.answered_late(C::NAME, &changed, outcome);
            }
        });
        let mut attended = Attended {
            call: Some(task.abort_handle()),
            later: &self.unattended,
        };
        let Ok(answer) = timeout(deadline, answered).await else {
            return ended.with(Err(late(deadline)));
        };
        attended.call = None;
        // Without an answer the process is about to end.
        let canceled = || CriError::new(C::NAME, CriErrorKind::Canceled, "");
        ended.with(answer.unwrap_or_else(|_| Err(canceled())))
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    #[tokio::test]
    async fn of_too_many_the_oldest_is_broken_off_and_the_others_when_the_client_is_gone() {
        let calls = Unattended::default();
        let mut tasks: VecDeque<_> = (0..=AT_MOST)
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
