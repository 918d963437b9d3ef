//! Both directions of a session, until it ends.

use std::{
    convert::Infallible,
    future::pending,
    io,
    os::fd::{AsFd as _, BorrowedFd},
};

use anyhow::Context as _;
use rubelet_cri::CriResult;
use rubelet_streaming::{RemoteProcess, Resize, SessionExit, Sink, Source, TerminalSize};
use tokio::signal::unix::{SignalKind, signal};

use super::{
    super::{
        failure::CommandError,
        signals::EndSignals,
        streams::{Input, Output, Streams},
    },
    raw::RawTerminal,
};

/// Copies streams until the process has exited and its output is written.
pub(super) async fn run(
    process: RemoteProcess,
    local: &Streams,
    raw: &mut Option<(RawTerminal, EndSignals)>,
    redraw: bool,
) -> Result<CriResult<SessionExit>, CommandError> {
    let RemoteProcess {
        stdin,
        stdout,
        stderr,
        resize,
        exit,
    } = process;
    let outputs = async {
        let (_, _, exit) = tokio::try_join!(
            copy_out(stdout, local.stdout.as_fd()),
            copy_out(stderr, local.stderr.as_fd()),
            async { Ok(exit.await) },
        )?;
        Ok(exit)
    };
    // Dropped branches end with the session: stdin data that was read and not sent has no reader
    // any more.
    tokio::select! {
        biased;
        ended = outputs => ended,
        failed = copy_in(stdin, local) => match failed? {},
        failed = follow_terminal(resize, raw, redraw) => match failed? {},
    }
}

/// Writes output. An error is local; a remote one is reported by the end of the session.
async fn copy_out(source: Option<Box<dyn Source>>, fd: BorrowedFd<'_>) -> Result<(), CommandError> {
    let Some(mut source) = source else {
        return Ok(());
    };
    let mut output = Output::write(fd)?;
    while let Ok(Some(bytes)) = source.read().await {
        output.put(bytes).await.map_err(unwritten)?;
    }
    output.finish().await.map_err(unwritten)
}

fn unwritten(error: io::Error) -> CommandError {
    match error.kind() {
        io::ErrorKind::BrokenPipe => CommandError::ReaderGone,
        _ => CommandError::Error(anyhow::Error::from(error).context("cannot write the output")),
    }
}

/// Copies stdin and closes it at its end. Only returns errors.
async fn copy_in(
    stdin: Option<Box<dyn Sink>>,
    local: &Streams,
) -> Result<Infallible, CommandError> {
    if let Some(mut stdin) = stdin {
        let mut input = Input::read(&local.stdin).context("cannot read stdin")?;
        // A command that stops reading may still have output.
        let _ = pass_on(&mut input, stdin.as_mut()).await;
        drop(input);
        return pending_with(stdin).await;
    }
    pending().await
}

async fn pass_on(input: &mut Input, stdin: &mut dyn Sink) -> io::Result<()> {
    while let Some(bytes) = input.next().await {
        stdin.write(bytes).await?;
    }
    stdin.close().await
}

/// Waits forever and keeps a value alive.
async fn pending_with<T>(kept: T) -> Result<Infallible, CommandError> {
    let _kept = kept;
    pending().await
}

/// Sends the terminal's size, and each new one, until a terminating signal arrives. Only returns
/// errors.
async fn follow_terminal(
    resize: Option<Resize>,
    raw: &mut Option<(RawTerminal, EndSignals)>,
    redraw: bool,
) -> Result<Infallible, CommandError> {
    let Some((raw, signals)) = raw else {
        return pending().await;
    };
    let mut changes = signal(SignalKind::window_change())?;
    let send = |size| {
        if let Some(resize) = &resize {
            resize(size);
        }
    };
    if let Some(size) = raw.size() {
        if redraw {
            // A process that runs already redraws its screen if the size changes.
            send(TerminalSize {
                width: size.width.saturating_add(1),
                height: size.height.saturating_add(1),
            });
            // Of several pending sizes only the last one is sent.
            tokio::task::yield_now().await;
        }
        send(size);
    }
    loop {
        // Both are cancel safe.
        tokio::select! {
            code = signals.next() => return Err(CommandError::Exit(code)),
            _ = changes.recv() => {}
        }
        if let Some(size) = raw.size() {
            send(size);
        }
    }
}
