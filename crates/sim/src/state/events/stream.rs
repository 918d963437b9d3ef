//! One caller's event stream.

use std::{collections::BTreeMap, time::Duration};

use super::{NumberedEvent, RETENTION, STREAM_CAPACITY};
use crate::{
    CallOutcome, EntryKind, EventFlavour,
    state::{RuntimeError, SimState},
    wait::Wait,
};

#[derive(Default)]
pub(crate) struct Stream {
    /// By the time at which they are ready, and by order of arrival.
    queue: BTreeMap<(Duration, u64), NumberedEvent>,
    came: u64,
    end: Option<End>,
    /// Whether it receives nothing any more, though it is open.
    mute: bool,
}

/// How a stream ended.
#[derive(Clone, Copy)]
enum End {
    /// The runtime closed it.
    Closed,
    /// The runtime died.
    Died,
    /// The connection is lost, and the runtime has not noticed.
    Lost,
    /// The caller dropped it, and the runtime has not noticed.
    Dropped,
}

impl Stream {
    pub(super) fn push(&mut self, ready: Duration, numbered: NumberedEvent) {
        if !self.mute && self.end.is_none() {
            self.put(ready, numbered);
        }
    }

    fn put(&mut self, ready: Duration, numbered: NumberedEvent) {
        self.came += 1;
        self.queue.insert((ready, self.came), numbered);
    }

    pub(super) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Whether the runtime sends to it, even if its reader is gone.
    pub(super) fn is_registered(&self) -> bool {
        !matches!(self.end, Some(End::Closed | End::Died))
    }

    /// Whether its caller dropped it and the runtime still sends to it.
    pub(super) fn is_dropped(&self) -> bool {
        matches!(self.end, Some(End::Dropped))
    }

    /// Whether it is being read.
    pub(super) fn is_read(&self) -> bool {
        self.end.is_none()
    }

    /// When the first event is ready.
    fn first(&self) -> Option<Duration> {
        self.queue.keys().next().map(|(ready, _)| *ready)
    }
}

/// The next item of a stream: an event, its last error, or its end.
pub(crate) type Item = Option<Result<NumberedEvent, RuntimeError>>;

impl SimState {
    /// A new stream's number; `None` if the runtime ends it immediately.
    pub(crate) fn open_stream(&mut self) -> Result<Option<u64>, RuntimeError> {
        if self.boot().is_none() {
            let refusal = "cannot connect: the model runtime is down";
            return Err(RuntimeError::unavailable(refusal));
        }
        let flavour = self.events.flavour;
        if !self.events.offered || flavour == EventFlavour::None {
            return Err(RuntimeError::unimplemented());
        }
        if flavour == EventFlavour::Closed {
            return Ok(None);
        }
        let number = self.fresh_number();
        let mut stream = Stream::default();
        if flavour != EventFlavour::Shared {
            let now = self.clock.now();
            let kept = self.events.kept.drain(..);
            let fresh =
                |ready: &Duration| flavour == EventFlavour::CriO || *ready + RETENTION >= now;
            for (ready, numbered) in kept.filter(|(ready, _)| fresh(ready)) {
                stream.put(ready, numbered);
            }
        }
        if self.events.withheld {
            stream.queue.clear();
        }
        self.events.began = true;
        self.events.streams.insert(number, stream);
        self.record(EntryKind::EventStreamOpened(number));
        if flavour == EventFlavour::Shared {
            self.deal_shared_queue();
        }
        Ok(Some(number))
    }

    /// The next event of a stream, or its end.
    pub(crate) fn next_event(&mut self, number: u64) -> Wait<Item> {
        let now = self.clock.now();
        let next_exit = self.next_exit();
        let withheld = self.events.withheld;
        let Some(stream) = self.events.streams.get_mut(&number) else {
            return Wait::Done(None);
        };
        match stream.end {
            Some(End::Closed | End::Dropped) => return Wait::Done(None),
            Some(End::Died | End::Lost) => {
                let refusal = "the connection was lost: the stream of events broke";
                return Wait::Done(Some(Err(RuntimeError::unavailable(refusal))));
            }
            None => {}
        }
        let first = stream.first().filter(|_| !withheld);
        if first.is_some_and(|ready| ready <= now)
            && let Some((_, numbered)) = stream.queue.pop_first()
        {
            self.record(EntryKind::EventDelivered {
                number: numbered.0,
                stream: number,
                event: numbered.1.clone(),
            });
            if self.events.flavour == EventFlavour::Shared {
                self.deal_shared_queue();
            }
            return Wait::Done(Some(Ok(numbered)));
        }
        // An exit occurs, and emits its event, at its time, even if there is no call.
        let times = first.into_iter().chain(next_exit);
        times.min().map_or(Wait::ForChange, Wait::Until)
    }

    /// Closes a stream that is not read any more. Whether the runtime notices depends on the
    /// flavour.
    pub(crate) fn close_stream(&mut self, number: u64, outcome: CallOutcome) {
        let flavour = self.events.flavour;
        let lingers = matches!(flavour, EventFlavour::Containerd | EventFlavour::Shared);
        if let Some(stream) = self.events.streams.get_mut(&number) {
            if lingers && stream.is_registered() {
                stream.queue.clear();
                stream.end = Some(End::Dropped);
            } else {
                self.events.streams.remove(&number);
            }
        }
        self.record(EntryKind::EventStreamEnded {
            stream: number,
            outcome,
        });
    }

    /// Fails all streams; the events in them are lost.
    pub(crate) fn cut_streams(&mut self) {
        self.end_streams(End::Lost);
    }

    /// The runtime ends all streams without an error.
    pub(crate) fn finish_streams(&mut self) {
        self.end_streams(End::Closed);
    }

    /// The runtime dies: its streams fail, and the events that it kept are lost.
    pub(crate) fn forget_events(&mut self) {
        self.events.streams.retain(|_, stream| !stream.is_dropped());
        self.end_streams(End::Died);
        self.events.kept.clear();
        self.events.began = false;
    }

    fn end_streams(&mut self, end: End) {
        for stream in self.events.streams.values_mut() {
            stream.queue.clear();
            // A reader that has not read an earlier error yet still reads that one.
            if stream.end.is_none() || matches!((stream.end, end), (Some(End::Lost), End::Died)) {
                stream.end = Some(end);
            }
        }
    }

    /// The streams that are open now receive nothing any more.
    pub(crate) fn mute_streams(&mut self) {
        for stream in self.events.streams.values_mut() {
            stream.queue.clear();
            stream.mute = true;
        }
    }

    /// Number of streams that are being read.
    pub(crate) fn open_streams(&self) -> usize {
        let all = self.events.streams.values();
        all.filter(|stream| stream.is_read()).count()
    }

    /// Whether no stream with too many pending events blocks the runtime.
    pub(crate) fn events_flow(&self) -> bool {
        let now = self.clock.now();
        let stalled = |stream: &Stream| {
            let ready = stream.queue.keys().take_while(|(ready, _)| *ready <= now);
            ready.take(STREAM_CAPACITY + 1).count() > STREAM_CAPACITY
        };
        let holds_up = self.events.flavour == EventFlavour::Containerd && !self.events.withheld;
        !holds_up || !self.events.streams.values().any(stalled)
    }
}
