//! The channels of a connection: one task reads and writes messages for all of them.

use std::{io, sync::Arc, time::Duration};

use async_trait::async_trait;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::{Bytes, BytesMut};
use futures_util::{SinkExt as _, StreamExt as _};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::{mpsc, watch},
    task::JoinHandle,
    time::{Instant, timeout},
};
use tokio_tungstenite::tungstenite::{
    Message,
    protocol::{CloseFrame, frame::coding::CloseCode},
};

use crate::{
    Sink,
    idle::{idle, with_grace},
    inbound::{Inbound, InboundSource, inbound},
    negotiate::ChannelProtocol,
};

/// In a message of this channel, the second byte is the number of the channel that the client
/// closes.
const CLOSE_SIGNAL: u8 = 255;

/// Most bytes of one message that is written. With the number of its channel and its head it fills two TLS records
/// exactly.
const LONGEST: usize = (32 << 10) - 5;

/// Time for a client to answer a close frame.
const LINGER: Duration = Duration::from_secs(1);

/// The direction of a channel; data on other channels is discarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    FromClient,
    ToClient,
    Both,
    Ignored,
}

/// A connection with channels.
pub(crate) struct Channels {
    outgoing: mpsc::Sender<Outgoing>,
    ended: watch::Receiver<bool>,
    used: Arc<Mutex<Instant>>,
    idle: Duration,
    task: Option<JoinHandle<()>>,
}

/// The client's end of a channel.
pub(crate) struct ChannelSink {
    number: u8,
    outgoing: mpsc::Sender<Outgoing>,
}

enum Outgoing {
    Data(u8, Bytes),
    Close,
}

impl Channels {
    /// Starts reading and writing; returns the source of each channel that has one.
    pub(crate) async fn start<I>(
        io: I,
        protocol: ChannelProtocol,
        directions: Vec<Direction>,
        idle_timeout: Duration,
    ) -> (Self, Vec<Option<InboundSource>>)
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let socket = super::accept(io).await;
        let (mut entries, mut sources) = (Vec::new(), Vec::new());
        for direction in &directions {
            let has_source = matches!(direction, Direction::FromClient | Direction::Both);
            let (entry, source, _) = inbound();
            entries.push(has_source.then_some(entry));
            sources.push(has_source.then_some(source));
        }
        let (outgoing, queue) = mpsc::channel(1);
        let (end, ended) = watch::channel(false);
        let used = Arc::new(Mutex::new(Instant::now()));
        let touched = Arc::clone(&used);
        let task = tokio::spawn(async move {
            let used = touched;
            let (sink, stream) = socket.split();
            let read = read(stream, protocol, entries, &used);
            let write = write(sink, protocol, queue, &used);
            drive(read, write, idle(&used, with_grace(idle_timeout))).await;
            end.send_replace(true);
        });
        let channels = Self {
            outgoing,
            ended,
            used,
            idle: idle_timeout,
            task: Some(task),
        };
        (channels, sources)
    }

    /// The sink of a channel.
    pub(crate) fn sink(&self, number: u8) -> ChannelSink {
        ChannelSink {
            number,
            outgoing: self.outgoing.clone(),
        }
    }

    /// Resolves when the connection has ended.
    pub(crate) fn ended(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut ended = self.ended.clone();
        async move {
            // An error means that the task is gone.
            let _ = ended.wait_for(|ended| *ended).await;
        }
    }

    /// Resolves when the connection is idle, with the timeout. What is sent then is no longer idle.
    pub(crate) fn idle(&self) -> impl Future<Output = Duration> + Send + use<> {
        let (used, after) = (Arc::clone(&self.used), self.idle);
        async move {
            idle(&used, after).await;
            after
        }
    }

    /// Sends all written data and a close frame; waits for the client's.
    pub(crate) async fn close(mut self) {
        if self.outgoing.send(Outgoing::Close).await.is_ok()
            && let Some(task) = self.task.take()
        {
            // The task ends within the time that it gives the client.
            let _ = task.await;
        }
    }
}

impl Drop for Channels {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}

#[async_trait]
impl Sink for ChannelSink {
    /// An empty message is sent, too: it signals the start of the session to the client.
    async fn write(&mut self, mut bytes: Bytes) -> io::Result<()> {
        loop {
            let piece = bytes.split_to(bytes.len().min(LONGEST));
            let sent = self.outgoing.send(Outgoing::Data(self.number, piece)).await;
            sent.map_err(|_| io::Error::new(io::ErrorKind::BrokenPipe, "the connection was lost"))?;
            if bytes.is_empty() {
                return Ok(());
            }
        }
    }

    /// The protocols can't close a channel from the server.
    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

async fn drive(
    read: impl Future<Output = io::Result<()>>,
    write: impl Future<Output = io::Result<()>>,
    idle: impl Future<Output = ()>,
) {
    let (mut read, mut write) = (std::pin::pin!(read), std::pin::pin!(write));
    tokio::select! {
        ended = read.as_mut() => {
            if let Err(error) = ended {
                tracing::debug!(%error, "A WebSocket broke");
            }
        }
        ended = write.as_mut() => match ended {
            Ok(()) => drop(timeout(LINGER, read).await),
            Err(error) => tracing::debug!(%error, "A WebSocket broke"),
        },
        () = idle => tracing::debug!("Closed an idle WebSocket"),
    }
}

async fn read<S>(
    mut stream: S,
    protocol: ChannelProtocol,
    mut entries: Vec<Option<Inbound>>,
    used: &Mutex<Instant>,
) -> io::Result<()>
where
    S: futures_util::Stream<Item = Result<Message, tokio_tungstenite::tungstenite::Error>> + Unpin,
{
    let result = loop {
        let message = match stream.next().await {
            None => break Ok(()),
            Some(Err(error)) => break Err(io::Error::other(error)),
            Some(Ok(message)) => message,
        };
        *used.lock() = Instant::now();
        let data = match message {
            Message::Binary(data) => data,
            Message::Text(text) => text.into(),
            // The reply to a close frame is sent by the next read, which then ends.
            _ => continue,
        };
        if let Err(error) = dispatch(data, protocol, &mut entries).await {
            break Err(error);
        }
    };
    entries.iter_mut().flatten().for_each(Inbound::lose);
    result
}

async fn dispatch(
    mut data: Bytes,
    protocol: ChannelProtocol,
    entries: &mut [Option<Inbound>],
) -> io::Result<()> {
    let Some(&number) = data.first() else {
        return Ok(());
    };
    let invalid = |what| Err(io::Error::new(io::ErrorKind::InvalidData, what));
    if protocol.close_signal && number == CLOSE_SIGNAL {
        let [_, closed] = *data else {
            return invalid("a close signal must name one channel");
        };
        let Some(entry) = entries.get_mut(usize::from(closed)) else {
            return invalid("a close signal names a channel that does not exist");
        };
        if let Some(entry) = entry {
            entry.finish();
        }
        return Ok(());
    }
    let number = match protocol.base64 {
        true => number.wrapping_sub(b'0'),
        false => number,
    };
    drop(data.split_to(1));
    let entry = entries.get(usize::from(number)).and_then(Option::as_ref);
    let Some(sender) = entry.and_then(Inbound::sender) else {
        return Ok(());
    };
    if protocol.base64 {
        match BASE64_STANDARD.decode(&data) {
            Ok(decoded) => data = decoded.into(),
            Err(_) => return invalid("a message is not base64"),
        }
    }
    // The reader may be gone.
    let _ = sender.send(data).await;
    Ok(())
}

async fn write<S>(
    mut sink: S,
    protocol: ChannelProtocol,
    mut queue: mpsc::Receiver<Outgoing>,
    used: &Mutex<Instant>,
) -> io::Result<()>
where
    S: futures_util::Sink<Message, Error = tokio_tungstenite::tungstenite::Error> + Unpin,
{
    while let Some(outgoing) = queue.recv().await {
        let message = match outgoing {
            Outgoing::Data(number, bytes) => encode(number, &bytes, protocol.base64),
            Outgoing::Close => Message::Close(Some(CloseFrame {
                code: CloseCode::Normal,
                reason: "".into(),
            })),
        };
        let is_last = message.is_close();
        sink.send(message).await.map_err(io::Error::other)?;
        *used.lock() = Instant::now();
        if is_last {
            break;
        }
    }
    Ok(())
}

fn encode(number: u8, bytes: &[u8], base64: bool) -> Message {
    if base64 {
        let mut text = String::from(char::from(b'0'.wrapping_add(number)));
        BASE64_STANDARD.encode_string(bytes, &mut text);
        return Message::text(text);
    }
    let mut message = BytesMut::with_capacity(1 + bytes.len());
    message.extend_from_slice(&[number]);
    message.extend_from_slice(bytes);
    Message::Binary(message.freeze())
}
