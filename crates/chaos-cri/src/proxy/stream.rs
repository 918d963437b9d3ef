//! Forwards a stream to the client, message by message.

use std::{future::pending, sync::Arc, time::Duration};

use bytes::Bytes;
use http::Response;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Frame, Incoming};
use tokio::time::{Instant, sleep_until, timeout};

use super::{
    body::{self, Body, BoxError, Sender, StreamReset, ok_trailers},
    runtime_connection::{RuntimeConnection, is_reset},
};
use crate::{
    change,
    decide::Decision,
    frame::{self, Splitter},
    rpc::{Rpc, Shape},
    rule::{Fault, Stage},
    subject::Subject,
};

/// How long messages are held when those with which they are to be swapped don't arrive.
const HOLD: Duration = Duration::from_millis(500);

/// Result of reading a frame of a runtime's stream.
type FrameResult = Option<Result<Frame<Bytes>, hyper::Error>>;

/// The response to the client, fed by a task that forwards what the runtime sends.
pub(super) fn answer(
    connection: &Arc<RuntimeConnection>,
    rpc: &'static Rpc,
    subject: Subject,
    answer: Response<Incoming>,
) -> Response<Body> {
    // A response that consists of a status only must stay one.
    if answer.body().is_end_stream() {
        return answer.map(body::from_incoming);
    }
    let (head, incoming) = answer.into_parts();
    let (forwarder, body) = StreamForwarder::new(connection, rpc, subject);
    tokio::spawn(forwarder.run(incoming));
    Response::from_parts(head, body)
}

/// The same, if the first frame of the stream has been read already.
pub(super) fn answer_with(
    connection: &Arc<RuntimeConnection>,
    rpc: &'static Rpc,
    subject: Subject,
    answer: Response<Incoming>,
    first: FrameResult,
) -> Response<Body> {
    let (head, incoming) = answer.into_parts();
    if first.is_none() {
        return Response::from_parts(head, body::empty());
    }
    let (mut forwarder, body) = StreamForwarder::new(connection, rpc, subject);
    tokio::spawn(async move {
        if forwarder.take(first).await.is_ok() {
            forwarder.run(incoming).await;
        }
    });
    Response::from_parts(head, body)
}

struct StreamForwarder {
    connection: Arc<RuntimeConnection>,
    rpc: &'static Rpc,
    /// Subject of the call.
    subject: Subject,
    client: Sender,
    splitter: Splitter,
    held: HeldMessages,
}

/// Messages that are held, to be sent in reverse order.
#[derive(Default)]
struct HeldMessages {
    messages: Vec<Bytes>,
    /// How many to hold; 0 while nothing is held.
    count: usize,
    until: Option<Instant>,
}

/// The stream to the client has ended.
struct StreamEnded;

impl StreamForwarder {
    fn new(
        connection: &Arc<RuntimeConnection>,
        rpc: &'static Rpc,
        subject: Subject,
    ) -> (Self, Body) {
        let (client, body) = body::channel();
        let forwarder = Self {
            connection: connection.clone(),
            rpc,
            subject,
            client,
            splitter: Splitter::default(),
            held: HeldMessages::default(),
        };
        (forwarder, body)
    }

    async fn run(mut self, mut incoming: Incoming) {
        loop {
            let until = self.held.until;
            let held = async {
                match until {
                    Some(until) => sleep_until(until).await,
                    None => pending().await,
                }
            };
            // Cancel safety: a frame is taken only when it is available.
            let ended = tokio::select! {
                () = self.client.closed() => Err(StreamEnded),
                () = held => self.release().await,
                read = incoming.frame() => self.take(read).await,
            };
            if ended.is_err() {
                return;
            }
        }
    }

    /// Forwards a frame.
    async fn take(&mut self, read: FrameResult) -> Result<(), StreamEnded> {
        let frame = match read {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => {
                self.release().await?;
                if !is_reset(&error) {
                    // The connection to the runtime is lost, which ends the client's connection
                    // too.
                    self.client.closed().await;
                }
                return self.end(Err(error.into())).await;
            }
            None => {
                self.release().await?;
                return Err(StreamEnded);
            }
        };
        let data = match frame.into_data() {
            Ok(data) => data,
            Err(trailers) => {
                self.release().await?;
                return self.end(Ok(trailers)).await;
            }
        };
        self.splitter.push(data);
        loop {
            match self.splitter.next() {
                Ok(Some(message)) => self.message(message).await?,
                Ok(None) => return Ok(()),
                Err(error) => return self.end(Err(error.into())).await,
            }
        }
    }

    async fn message(&mut self, framed: Bytes) -> Result<(), StreamEnded> {
        let Some(message) = frame::message(&framed) else {
            return self.emit(framed).await;
        };
        let subject = self.about(&message);
        let shared = self.connection.shared.clone();
        let decision = shared.decide(Stage::Message, self.rpc, &subject);
        match decision {
            None => self.emit(framed.clone()).await?,
            Some(decision) => self.inject(framed.clone(), &message, decision).await?,
        }
        if self.rpc.shape == Shape::Events {
            shared.history.lock().push(&framed);
        }
        Ok(())
    }

    fn about(&self, message: &[u8]) -> Subject {
        let mut known = self.connection.shared.known.lock();
        if self.rpc.shape == Shape::Events {
            return known.of_event(message);
        }
        if self.connection.shared.rules.lock().name_pods() {
            known.learn_list(self.rpc.name, message);
        }
        self.subject.clone()
    }

    async fn inject(
        &mut self,
        framed: Bytes,
        message: &[u8],
        mut decision: Decision,
    ) -> Result<(), StreamEnded> {
        match decision.fault {
            Fault::Drop => Ok(()),
            Fault::Delay(ref span) => {
                let millis = decision.dice.within(span);
                // The timeout is the delay, unless the client disconnects.
                if timeout(Duration::from_millis(millis), self.client.closed())
                    .await
                    .is_ok()
                {
                    return Err(StreamEnded);
                }
                self.emit(framed).await
            }
            Fault::Duplicate(count) => {
                for _ in 0..count {
                    self.emit(framed.clone()).await?;
                }
                Ok(())
            }
            Fault::Swap => self.hold(2, framed).await,
            Fault::Reverse(count) => {
                self.hold(usize::try_from(count).unwrap_or(usize::MAX), framed)
                    .await
            }
            Fault::Stale => {
                self.emit(framed).await?;
                let stale = {
                    let history = self.connection.shared.history.lock();
                    let earlier = history
                        .iter()
                        .map(|event| event.get(5..).unwrap_or_default());
                    change::stale(message, earlier)
                };
                match stale {
                    Some(stale) => self.emit(frame::framed(&stale)).await,
                    None => Ok(()),
                }
            }
            Fault::Replay(count) => {
                let old = self.connection.shared.history.lock().replay(count);
                for event in old {
                    self.emit(event).await?;
                }
                self.emit(framed).await
            }
            Fault::Eof => Err(StreamEnded),
            Fault::Reset => self.end(Err(StreamReset.into())).await,
            Fault::End => self.end(Ok(Frame::trailers(ok_trailers()))).await,
            ref fault => {
                let Decision { select, dice, .. } = &mut decision.clone();
                let changed = change::apply_fault(self.rpc.shape, fault, select, dice, message);
                self.emit(changed.map_or(framed, |message| frame::framed(&message)))
                    .await
            }
        }
    }

    /// Sends a message after the held ones.
    async fn emit(&mut self, framed: Bytes) -> Result<(), StreamEnded> {
        if self.held.count == 0 {
            return self.send(Ok(Frame::data(framed))).await;
        }
        self.held.messages.push(framed);
        if self.held.messages.len() >= self.held.count {
            self.release().await?;
        }
        Ok(())
    }

    /// Holds this message and the following ones until there are `count`.
    async fn hold(&mut self, count: usize, framed: Bytes) -> Result<(), StreamEnded> {
        if self.held.count == 0 {
            self.held.count = count;
            self.held.until = Some(Instant::now() + HOLD);
        }
        self.emit(framed).await
    }

    async fn release(&mut self) -> Result<(), StreamEnded> {
        let held = std::mem::take(&mut self.held);
        for message in held.messages.into_iter().rev() {
            self.send(Ok(Frame::data(message))).await?;
        }
        Ok(())
    }

    async fn send(&mut self, frame: Result<Frame<Bytes>, BoxError>) -> Result<(), StreamEnded> {
        self.client.send(frame).await.map_err(|_| StreamEnded)
    }

    /// Sends the last frame of the stream.
    async fn end(&mut self, frame: Result<Frame<Bytes>, BoxError>) -> Result<(), StreamEnded> {
        self.send(frame).await?;
        Err(StreamEnded)
    }
}
