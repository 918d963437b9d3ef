//! Streams of events.

use futures_util::stream;
use rubelet_cri::{Call, ContainerEvent, CriError, CriResult, EventStream, v1};

use crate::{CallOutcome, Sim, Subject, fault::Moment, state::Refusal};

const CALL: &str = v1::GetEventsRequest::NAME;

/// How far a stream has come.
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

/// Asks for a stream. The faults and hangs of calls hold for this, too.
async fn subscribe(sim: Sim) -> Result<Option<Reader>, Refusal> {
    sim.leg::<v1::GetEventsRequest>().await;
    sim.faults(CALL, &Subject::any(), Moment::Before).await?;
    let number = sim.with(|state| state.open_stream())?;
    Ok(number.map(|number| Reader {
        sim,
        number,
        outcome: CallOutcome::Dropped,
    }))
}

/// A stream that was opened. Dropped, it is read no more.
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
                // Calls may wait for the room that this made.
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

fn failed(refusal: Refusal) -> CriError {
    CriError::new(CALL, refusal.kind, refusal.message)
}

impl Sim {
    /// Waits until no stream that nobody reads holds up the runtime.
    pub(crate) async fn emitted(&self) {
        self.wait(|state| state.events_flow().then_some(()).into())
            .await;
    }
}
