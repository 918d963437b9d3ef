//! Assigns the channels.

use std::{pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use rubelet_cri::CriResult;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch,
    time::timeout,
};

use super::channel::{Channels, Direction};
use crate::{
    Duplex, PortDialer, RemoteProcess, SessionKind, Sink, StdStreams,
    ending::TOLD_WITHIN,
    negotiate::ChannelProtocol,
    port_session::{forward_or_end, ports_end},
    process_session::{ClientStreams, serve},
};

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
const RESIZE: u8 = 4;

/// Serves exec or attach.
pub(crate) async fn process<I>(
    io: I,
    (kind, streams): (SessionKind, StdStreams),
    protocol: ChannelProtocol,
    open: impl Future<Output = CriResult<RemoteProcess>> + Send,
    idle: Duration,
    shutdown: Pin<Box<dyn Future<Output = ()> + Send>>,
) where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let asked = |asked: bool, direction| match asked {
        true => direction,
        false => Direction::Ignored,
    };
    let directions = vec![
        asked(streams.stdin, Direction::FromClient),
        asked(streams.stdout, Direction::ToClient),
        asked(streams.stderr, Direction::ToClient),
        Direction::ToClient,
        Direction::FromClient,
    ];
    let (channels, mut sources) = Channels::start(io, protocol, directions, idle).await;
    let mut source = |number: u8| {
        let source = sources.get_mut(usize::from(number)).and_then(Option::take);
        source.map(|source| Box::new(source) as _)
    };
    let sink =
        |asked: bool, number| asked.then(|| Box::new(channels.sink(number)) as Box<dyn Sink>);
    let first = match (streams.stdout, streams.stderr) {
        (true, _) => STDOUT,
        (_, true) => STDERR,
        _ => ERROR,
    };
    let client = ClientStreams {
        stdin: source(STDIN),
        resize: source(RESIZE),
        stdout: sink(streams.stdout, STDOUT),
        stderr: sink(streams.stderr, STDERR),
        unused: Vec::new(),
        error: Box::new(channels.sink(ERROR)),
        form: protocol.form,
    };
    // Signals the start of the session to the client before the process writes anything.
    if channels.sink(first).write(Bytes::new()).await.is_err() {
        return;
    }
    let (gone, idle) = (channels.ended(), channels.idle());
    serve(client, kind, open, gone, idle, shutdown).await;
    channels.close().await;
}

/// Serves port-forward: two channels for each port, data and errors. Each begins with its port
/// number, little-endian.
pub(crate) async fn ports<I>(
    io: I,
    protocol: ChannelProtocol,
    ports: Vec<u16>,
    dialer: Arc<dyn PortDialer>,
    idle: Duration,
    shutdown: Pin<Box<dyn Future<Output = ()> + Send>>,
) where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let pair = [Direction::Both, Direction::ToClient];
    let directions = ports.iter().flat_map(|_| pair).collect();
    let (channels, sources) = Channels::start(io, protocol, directions, idle).await;
    let mut sources = sources.into_iter().flatten();
    let (tell, told) = watch::channel(None);
    let mut forwards = Vec::new();
    for (index, port) in ports.into_iter().enumerate() {
        let (Ok(data), Some(source)) = (u8::try_from(2 * index), sources.next()) else {
            break;
        };
        let (mut sink, mut errors) = (channels.sink(data), channels.sink(data + 1));
        let number = Bytes::copy_from_slice(&port.to_le_bytes());
        for channel in [&mut sink, &mut errors] {
            if channel.write(number.clone()).await.is_err() {
                return;
            }
        }
        let client = Duplex {
            source: Box::new(source),
            sink: Box::new(sink),
        };
        let (dialer, mut told) = (Arc::clone(&dialer), told.clone());
        forwards.push(async move {
            if let Err(text) = forward_or_end(client, port, &*dialer, &mut told).await {
                // If the client is gone, the error has no reader.
                let _ = errors.write(text.into()).await;
            }
        });
    }
    let mut forwards = std::pin::pin!(futures_util::future::join_all(forwards));
    tokio::select! {
        _ = forwards.as_mut() => {}
        () = channels.ended() => return,
        ending = ports_end(&*dialer, channels.idle(), shutdown) => {
            tell.send_replace(Some(ending));
            let _ = timeout(TOLD_WITHIN, forwards).await;
        }
    }
    channels.close().await;
}
