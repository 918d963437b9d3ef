//! Path of every call: it is recorded, delayed, failed or blocked as the test configures, and ended
//! by deadlines and by the runtime's death.

use std::{future::Future, time::Duration};

use rubelet_cri::{Call, CriError, CriErrorKind, CriResult};
use tokio::{task::yield_now, time::sleep};

use crate::{
    CallOutcome, EntryKind, Sim, Subject,
    fault::Moment,
    state::{RuntimeError, SimState},
    wait::Wait,
};

/// The calls that emit events before their response.
const EMITTING_CALLS: [&str; 6] = [
    "RunPodSandbox",
    "StopPodSandbox",
    "RemovePodSandbox",
    "CreateContainer",
    "StartContainer",
    "RemoveContainer",
];

impl Sim {
    /// A call whose effect takes no time.
    pub(crate) async fn call_immediate<C: Call>(
        &self,
        subject: Subject,
        request: C,
        effect: impl FnOnce(&mut SimState, &C) -> Result<C::Response, RuntimeError> + Send,
    ) -> CriResult<C::Response> {
        let effect = |request| async move { self.with(|state| effect(state, &request)) };
        self.call(subject, request, effect).await
    }

    /// A call whose effect is a future, from request to response.
    pub(crate) async fn call<C, F>(
        &self,
        subject: Subject,
        request: C,
        effect: impl FnOnce(C) -> F + Send,
    ) -> CriResult<C::Response>
    where
        C: Call,
        F: Future<Output = Result<C::Response, RuntimeError>> + Send,
    {
        let deadline = request.deadline(self.timeouts());
        let (record, boot) = Record::begin(self, C::NAME, subject);
        let subject = &record.subject;
        let way = async {
            self.delay_half_latency::<C>().await;
            self.faults(C::NAME, subject, Moment::Before).await?;
            let answer = effect(request).await;
            if EMITTING_CALLS.contains(&C::NAME) {
                self.emitted().await;
            }
            if answer.is_ok() {
                self.faults(C::NAME, subject, Moment::After).await?;
            }
            self.delay_half_latency::<C>().await;
            answer
        };
        let result = tokio::select! {
            biased;
            refusal = self.runtime_gone(boot) => Err(refusal),
            result = with_deadline(deadline, way) => result,
        };
        record.end(result.map_err(|RuntimeError { kind, message }| {
            let kind = match (kind, deadline) {
                (CriErrorKind::DeadlineExceeded(limit), Some(deadline)) if limit.is_zero() => {
                    CriErrorKind::DeadlineExceeded(deadline)
                }
                _ => kind,
            };
            CriError::new(C::NAME, kind, message)
        }))
    }

    /// Waits for the latency of a request or of a response. Yields to other tasks even without
    /// latency.
    pub(crate) async fn delay_half_latency<C: Call>(&self) {
        let latency = self.look(|state| state.latency_of(C::NAME)) / 2;
        if latency.is_zero() {
            yield_now().await;
        } else {
            sleep(latency).await;
        }
    }

    pub(crate) async fn faults(
        &self,
        call: &str,
        subject: &Subject,
        moment: Moment,
    ) -> Result<(), RuntimeError> {
        if let Some(key) = self.look(|state| state.faults.hang(call, subject, moment)) {
            let _held = HangingCall::new(self, key);
            self.wait(|state| (!state.faults.is_held(key)).then_some(()).into())
                .await;
        }
        let failure = self.look(|state| state.faults.failure(call, subject, moment));
        failure.map_or(Ok(()), |(kind, message)| {
            Err(RuntimeError { kind, message })
        })
    }

    /// Resolves when the runtime that the call reached has died.
    async fn runtime_gone(&self, boot: Option<u64>) -> RuntimeError {
        let Some(boot) = boot else {
            return RuntimeError::unavailable("cannot connect: the model runtime is down");
        };
        self.wait(|state| {
            if state.boot() == Some(boot) {
                Wait::ForChange
            } else {
                Wait::Done(())
            }
        })
        .await;
        RuntimeError::unavailable("the connection was lost: the model runtime went down")
    }
}

async fn with_deadline<T>(
    limit: Option<Duration>,
    way: impl Future<Output = Result<T, RuntimeError>>,
) -> Result<T, RuntimeError> {
    match limit {
        None => way.await,
        Some(limit) => tokio::time::timeout(limit, way).await.unwrap_or_else(|_| {
            let kind = CriErrorKind::DeadlineExceeded(limit);
            let message = String::new();
            Err(RuntimeError { kind, message })
        }),
    }
}

/// Counts a call as hanging until it is dropped.
struct HangingCall<'a> {
    sim: &'a Sim,
    key: u64,
}

impl<'a> HangingCall<'a> {
    fn new(sim: &'a Sim, key: u64) -> Self {
        sim.with(|state| state.faults.count_held(key, |held| held + 1));
        Self { sim, key }
    }
}

impl Drop for HangingCall<'_> {
    fn drop(&mut self) {
        self.sim.with(|state| {
            let fewer = |held: usize| held.saturating_sub(1);
            state.faults.count_held(self.key, fewer);
        });
    }
}

/// Records the end of a call, also if its future is dropped.
struct Record<'a> {
    sim: &'a Sim,
    number: u64,
    call: &'static str,
    subject: Subject,
    outcome: CallOutcome,
}

impl<'a> Record<'a> {
    /// The record, and the boot number of the runtime that the call reached, if it is up.
    fn begin(sim: &'a Sim, call: &'static str, subject: Subject) -> (Self, Option<u64>) {
        let (number, boot) = sim.with(|state| {
            let number = state.fresh_number();
            state.record(EntryKind::CallBegan {
                number,
                call,
                subject: subject.clone(),
            });
            (number, state.boot())
        });
        let outcome = CallOutcome::Dropped;
        let record = Self {
            sim,
            number,
            call,
            subject,
            outcome,
        };
        (record, boot)
    }

    fn end<T>(mut self, result: CriResult<T>) -> CriResult<T> {
        self.outcome = match &result {
            Ok(_) => CallOutcome::Done,
            Err(error) => CallOutcome::Failed(error.kind, error.message.clone()),
        };
        result
    }
}

impl Drop for Record<'_> {
    fn drop(&mut self) {
        let (number, call) = (self.number, self.call);
        let subject = std::mem::take(&mut self.subject);
        let outcome = std::mem::replace(&mut self.outcome, CallOutcome::Dropped);
        self.sim.with(|state| {
            state.record(EntryKind::CallEnded {
                number,
                call,
                subject,
                outcome,
            });
        });
    }
}
