//! Event streams.

use futures_util::stream;
use rubelet_cri::{Call, ContainerEvent, CriError, CriResult, EventStream, v1};

use crate::{CallOutcome, Sim, Subject, fault::Moment, state::RuntimeError};

const CALL: &str = v1::GetEventsRequest::NAME;

/// State of a stream.
enum Stage {
    Before(Sim),
    Open(Reader),
}

/// The events of a model, from the first poll until this is dropped.
pub(super) fn open(sim: &Sim) -> EventStream {
    let start = Stage::Before(sim.clone());
    Box::pin(stream::try_unfold(start, |stage| async {
        let mut reader = match stage {
            Stage::Open(reader) => reader,
            Stage::Before(sim) => match subscribe(sim).await.map_err(failed)? {
                None => return Ok(None),
                Some(reader) => reader,
            },
        };
        let event = reader.next().await?;
        Ok(event.map(|event| (event, Stage::Open(reader))))
    }))
}

/// Opens a stream. Faults and hangs of calls apply to this too.
async fn subscribe(sim: Sim) -> Result<Option<Reader>, RuntimeError> {
    sim.delay_half_latency::<v1::GetEventsRequest>().await;
    sim.faults(CALL, &Subject::any(), Moment::Before).await?;
    let number = sim.with(|state| state.open_stream())?;
    Ok(number.map(|number| Reader {
        sim,
        number,
        outcome: CallOutcome::Dropped,
    }))
}

/// An open stream. Dropping it stops the reading.
struct Reader {
    sim: Sim,
    number: u64,
    outcome: CallOutcome,
}

impl Reader {
    async fn next(&mut self) -> CriResult<Option<ContainerEvent>> {
        let number = self.number;
        let item = self.sim.wait(|state| state.next_event(number)).await;
        match item {
            Some(Ok((_, event))) => {
                // Calls may wait for the space that this freed.
                self.sim.with(|_| ());
                Ok(Some(ContainerEvent::clone(&event)))
            }
            Some(Err(refusal)) => {
                self.outcome = CallOutcome::Failed(refusal.kind, refusal.message.clone());
                Err(failed(refusal))
            }
            None => {
                self.outcome = CallOutcome::Done;
                Ok(None)
            }
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let outcome = std::mem::replace(&mut self.outcome, CallOutcome::Dropped);
        let number = self.number;
        self.sim.with(|state| state.close_stream(number, outcome));
    }
}

fn failed(refusal: RuntimeError) -> CriError {
    CriError::new(CALL, refusal.kind, refusal.message)
}

impl Sim {
    /// Waits until no stream with too many pending events blocks the runtime.
    pub(crate) async fn emitted(&self) {
        self.wait(|state| state.events_flow().then_some(()).into())
            .await;
    }
}
