//! One call: what goes wrong with it, and what the client gets.

use std::{future::pending, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, header, response};
use http_body_util::{BodyExt, Limited};
use hyper::body::{Frame, Incoming};

use super::{
    body::{self, Body, BoxError, StreamReset},
    link::{Link, is_reset},
    stream,
};
use crate::{
    change,
    code::Code,
    decide::Decision,
    frame,
    rpc::{self, Rpc},
    rule::{Fault, Stage},
    subject::Subject,
};

/// The largest request, in bytes: more than any runtime takes.
const LARGEST_REQUEST: usize = 32 * 1024 * 1024;
/// The largest answer that is read to be changed, in bytes.
const LARGEST_ANSWER: usize = 64 * 1024 * 1024;
/// How long a call may continue of which the client learns nothing.
const UNSEEN: Duration = Duration::from_secs(600);

/// A request that was read whole, to be sent as it came.
pub(super) type Whole = Request<Body>;

/// Answers a request of a client.
pub(super) async fn answer(
    link: Arc<Link>,
    request: Request<Incoming>,
) -> Result<Response<Body>, BoxError> {
    let Some(rpc) = rpc::of_path(request.uri().path()) else {
        let answer = link.forward(request.map(body::own)).await?;
        return Ok(answer.map(body::own));
    };
    let (head, incoming) = request.into_parts();
    let request = Limited::new(incoming, LARGEST_REQUEST)
        .collect()
        .await?
        .to_bytes();
    let message = frame::message(&request).unwrap_or_default();
    let subject = link.shared.known.lock().of_request(rpc.name, &message);
    let decision = link.shared.decide(Stage::Call, rpc, &subject);
    let request = Request::from_parts(head, body::whole(request, None));
    match decision {
        None => passed(&link, rpc, request, subject).await,
        Some(decision) => injected(link, rpc, request, subject, decision).await,
    }
}

/// A call with which nothing goes wrong, unless it is a stream and something does later.
async fn passed(
    link: &Arc<Link>,
    rpc: &'static Rpc,
    request: Whole,
    subject: Subject,
) -> Result<Response<Body>, BoxError> {
    let answer = link.forward(request).await?;
    if rpc.shape.is_stream() {
        return Ok(stream::answer(link, rpc, subject, answer));
    }
    let learns = match rpc.name {
        "RunPodSandbox" | "CreateContainer" => true,
        _ => rpc.shape.is_list() && link.shared.rules.lock().name_pods(),
    };
    if !learns {
        return Ok(answer.map(body::own));
    }
    let (head, bytes, trailers) = read(answer).await?;
    learn(link, rpc, &subject, &bytes);
    Ok(Response::from_parts(head, body::whole(bytes, trailers)))
}

fn learn(link: &Link, rpc: &Rpc, subject: &Subject, bytes: &Bytes) {
    if let Some(message) = frame::message(bytes) {
        let mut known = link.shared.known.lock();
        known.learn_created(rpc.name, subject, &message);
        known.learn_list(rpc.name, &message);
    }
}

async fn read(
    answer: Response<Incoming>,
) -> Result<(response::Parts, Bytes, Option<HeaderMap>), BoxError> {
    let (head, incoming) = answer.into_parts();
    let read = Limited::new(incoming, LARGEST_ANSWER).collect().await;
    let whole = match read {
        Ok(whole) => whole,
        // With the connection to the runtime this one ends too.
        Err(error) if is_lost(&error) => pending().await,
        Err(error) => return Err(error),
    };
    let trailers = whole.trailers().cloned();
    Ok((head, whole.to_bytes(), trailers))
}

fn is_lost(error: &BoxError) -> bool {
    let error = error.downcast_ref::<hyper::Error>();
    error.is_some_and(|error| !is_reset(error))
}

async fn injected(
    link: Arc<Link>,
    rpc: &'static Rpc,
    request: Whole,
    subject: Subject,
    mut decision: Decision,
) -> Result<Response<Body>, BoxError> {
    let injected_by = format!("injected by chaos-cri: {}", decision.rule);
    match &decision.fault {
        Fault::Hang => pending().await,
        Fault::Fail(code) => Ok(body::status(*code, &injected_by)),
        Fault::Cut => {
            link.shared.cut();
            pending().await
        }
        Fault::Freeze(span) => {
            link.gate.freeze(*span);
            passed(&link, rpc, request, subject).await
        }
        Fault::Delay(span) => {
            let millis = decision.dice.within(span);
            tokio::time::sleep(Duration::from_millis(millis)).await;
            passed(&link, rpc, request, subject).await
        }
        Fault::Stall => {
            let answer = link.forward(request).await?;
            let (head, unread) = answer.into_parts();
            let (sender, body) = body::channel();
            // Holds the runtime's answer, unread, for as long as the client waits for it.
            tokio::spawn(async move {
                sender.closed().await;
                drop(unread);
            });
            Ok(Response::from_parts(head, body))
        }
        Fault::Withhold => {
            let mut answer = link.forward(request).await?;
            let first = answer.body_mut().frame().await;
            Ok(stream::answer_with(&link, rpc, subject, answer, first))
        }
        Fault::Lost(code) => lost(link, rpc, request, subject, *code, &injected_by).await,
        Fault::Eof => {
            let answer = link.forward(request).await?;
            let (mut head, incoming) = answer.into_parts();
            unseen(async { incoming.collect().await.map(drop) }).await;
            // An answer may be a status in the head alone.
            head.headers.remove("grpc-status");
            Ok(Response::from_parts(head, body::nothing()))
        }
        Fault::Reset => {
            let answer = link.forward(request).await?;
            let (head, incoming) = answer.into_parts();
            unseen(async { incoming.collect().await.map(drop) }).await;
            let (sender, body) = body::channel();
            let broken: Result<Frame<Bytes>, BoxError> = Err(StreamReset.into());
            // It has room for one.
            let _ = sender.try_send(broken);
            Ok(Response::from_parts(head, body))
        }
        _ => {
            let (mut head, bytes, trailers) = read(link.forward(request).await?).await?;
            learn(&link, rpc, &subject, &bytes);
            let message = frame::message(&bytes).and_then(|message| {
                let Decision {
                    fault,
                    select,
                    dice,
                    ..
                } = &mut decision;
                change::changed(rpc.shape, fault, select, dice, &message)
            });
            head.headers.remove(header::CONTENT_LENGTH);
            let bytes = message.map_or(bytes, |message| frame::framed(&message));
            Ok(Response::from_parts(head, body::whole(bytes, trailers)))
        }
    }
}

/// The runtime does what it was asked to, also when the client goes away meanwhile.
async fn lost(
    link: Arc<Link>,
    rpc: &'static Rpc,
    request: Whole,
    subject: Subject,
    code: Option<Code>,
    injected_by: &str,
) -> Result<Response<Body>, BoxError> {
    let done = tokio::spawn(unseen(async move {
        let (_, bytes, _) = read(link.forward(request).await?).await?;
        learn(&link, rpc, &subject, &bytes);
        Ok::<_, BoxError>(())
    }));
    match code {
        None => pending().await,
        Some(code) => {
            // Whether it went well is what the client is not to learn.
            let _ = done.await;
            Ok(body::status(code, injected_by))
        }
    }
}

async fn unseen<E>(work: impl Future<Output = Result<(), E>>) {
    if !matches!(tokio::time::timeout(UNSEEN, work).await, Ok(Ok(()))) {
        tracing::debug!("A call failed whose result the client does not see");
    }
}
