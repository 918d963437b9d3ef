//! A session with a process: copies between the client's streams and the runtime's, and reports how
//! it ended.

use std::{future::Future, io, pin::Pin, time::Duration};

use bytes::Bytes;
use rubelet_cri::CriResult;
use serde_json::Deserializer;
use tokio::time::timeout;

use crate::{
    RemoteProcess, Resize, SessionExit, SessionKind, Sink, Source, TerminalSize, copy,
    ending::SessionEnding,
    status::{StatusForm, ended_by, status},
};

/// Maximum size of an incomplete terminal size message.
const LONGEST_SIZE: usize = 4 << 10;

/// Time for a process to exit after its client is gone, before its session ends.
const AFTER_CLIENT: Duration = Duration::from_secs(1);

/// The client's streams, whatever protocol carries them.
pub(crate) struct ClientStreams {
    pub(crate) stdin: Option<Box<dyn Source>>,
    pub(crate) stdout: Option<Box<dyn Sink>>,
    pub(crate) stderr: Option<Box<dyn Sink>>,
    pub(crate) resize: Option<Box<dyn Source>>,
    /// The server's halves of streams that only the client sends on. They are closed at the end of
    /// the session: a client whose input the server closes also closes its own half, whatever is
    /// left to send.
    pub(crate) unused: Vec<Box<dyn Sink>>,
    /// The stream for the status.
    pub(crate) error: Box<dyn Sink>,
    pub(crate) form: StatusForm,
}

/// Serves a session until the process has exited, shortly after the client is gone (`gone`), or until
/// the session is idle (`idle`, after that time) or the server stops.
pub(crate) async fn serve(
    mut client: ClientStreams,
    kind: SessionKind,
    open: impl Future<Output = CriResult<RemoteProcess>> + Send,
    gone: impl Future<Output = ()> + Send,
    idle: impl Future<Output = Duration> + Send,
    shutdown: Pin<Box<dyn Future<Output = ()> + Send>>,
) {
    let mut gone = std::pin::pin!(gone);
    let exit = {
        let session = async {
            let process = open.await?;
            run(&mut client, process).await
        };
        let mut session = std::pin::pin!(session);
        tokio::select! {
            exit = session.as_mut() => exit,
            () = gone.as_mut() => {
                // First the process reads the end of its input. containerd, which learns of that and
                // of the end of the connection at the same time, may leave it running.
                let _ = timeout(AFTER_CLIENT, session).await;
                return;
            }
            after = idle => ended_by(SessionEnding::Idle(after)),
            () = shutdown => ended_by(SessionEnding::Stopping),
        }
    };
    let finish = finish(&mut client, kind, exit);
    // A client that is gone reads no status; one that does not read has until the idle timeout.
    tokio::select! {
        _ = finish => {}
        () = gone => {}
    }
}

async fn finish(
    client: &mut ClientStreams,
    kind: SessionKind,
    exit: CriResult<SessionExit>,
) -> io::Result<()> {
    for output in [&mut client.stdout, &mut client.stderr]
        .into_iter()
        .flatten()
    {
        output.close().await?;
    }
    let status = status(client.form, kind, &exit);
    if !status.is_empty() {
        client.error.write(status).await?;
    }
    client.error.close().await?;
    for unused in &mut client.unused {
        unused.close().await?;
    }
    Ok(())
}

/// Copies until the outputs have ended, then waits for the exit.
async fn run(client: &mut ClientStreams, process: RemoteProcess) -> CriResult<SessionExit> {
    let RemoteProcess {
        stdin,
        mut stdout,
        mut stderr,
        resize,
        exit,
    } = process;
    let input = feed(client.stdin.take(), stdin);
    let sizes = follow_sizes(client.resize.take(), resize);
    let outputs = async {
        let first = output(stdout.as_deref_mut(), client.stdout.as_deref_mut());
        let second = output(stderr.as_deref_mut(), client.stderr.as_deref_mut());
        tokio::join!(first, second);
        exit.await
    };
    tokio::select! {
        exit = outputs => exit,
        never = input => match never {},
        never = sizes => match never {},
    }
}

/// Never returns: the end of the input is not the end of the session.
async fn feed(
    client: Option<Box<dyn Source>>,
    process: Option<Box<dyn Sink>>,
) -> std::convert::Infallible {
    if let (Some(mut client), Some(mut process)) = (client, process) {
        // A process that stops reading, or a client that is gone, is detected elsewhere.
        if copy(&mut *client, &mut *process).await.is_err() {
            let _ = process.close().await;
        }
        // Unread input must not block the client's other streams.
        while let Ok(Some(_)) = client.read().await {}
    }
    std::future::pending().await
}

async fn output(process: Option<&mut (dyn Source + '_)>, client: Option<&mut (dyn Sink + '_)>) {
    let Some(process) = process else {
        return;
    };
    let mut client = client;
    // A broken pipe ends the output like EOF; the connection detects that the client is gone.
    while let Ok(Some(bytes)) = process.read().await {
        if let Some(to) = &mut client
            && to.write(bytes).await.is_err()
        {
            client = None;
        }
    }
}

async fn follow_sizes(
    client: Option<Box<dyn Source>>,
    resize: Option<Resize>,
) -> std::convert::Infallible {
    if let Some(mut client) = client {
        let mut held = Vec::new();
        while let Ok(Some(bytes)) = client.read().await {
            if let (Some(size), Some(resize)) = (last_size(&mut held, &bytes), &resize) {
                resize(size);
            }
        }
    }
    std::future::pending().await
}

/// The latest complete size; the remainder stays in `held`. Invalid data is dropped.
fn last_size(held: &mut Vec<u8>, bytes: &Bytes) -> Option<TerminalSize> {
    held.extend_from_slice(bytes);
    let mut sizes = Deserializer::from_slice(held).into_iter::<TerminalSize>();
    let mut last = None;
    let rubbish = loop {
        match sizes.next() {
            Some(Ok(size)) => last = Some(size),
            Some(Err(error)) => break !error.is_eof(),
            None => break false,
        }
    };
    let read = sizes.byte_offset();
    held.drain(..read);
    if rubbish || held.len() > LONGEST_SIZE {
        held.clear();
    }
    last
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use async_trait::async_trait;
    use tokio::sync::Semaphore;

    use super::*;

    /// The end of everything.
    struct Nothing;

    #[async_trait]
    impl Source for Nothing {
        async fn read(&mut self) -> io::Result<Option<Bytes>> {
            Ok(None)
        }
    }

    /// Input of a process that ends with it.
    struct Input(Arc<Semaphore>);

    #[async_trait]
    impl Sink for Input {
        async fn write(&mut self, _: Bytes) -> io::Result<()> {
            Ok(())
        }

        async fn close(&mut self) -> io::Result<()> {
            self.0.add_permits(1);
            Ok(())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_is_gone_ends_the_input_before_the_session() {
        for ends_with_input in [true, false] {
            let (closed, ended) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
            let client = ClientStreams {
                stdin: Some(Box::new(Nothing)),
                stdout: None,
                stderr: None,
                resize: None,
                unused: Vec::new(),
                error: Box::new(Input(Arc::new(Semaphore::new(0)))),
                form: StatusForm::Json,
            };
            let (input, end) = (Arc::clone(&closed), Arc::clone(&ended));
            let exit = Box::pin(async move {
                input.acquire().await.unwrap().forget();
                if !ends_with_input {
                    std::future::pending::<()>().await;
                }
                end.add_permits(1);
                Ok(SessionExit::Code(0))
            });
            let process = RemoteProcess {
                stdin: Some(Box::new(Input(closed))),
                stdout: None,
                stderr: None,
                resize: None,
                exit,
            };
            let open = async { Ok(process) };
            let forever = Box::pin(std::future::pending());
            let busy = std::future::pending();
            serve(client, SessionKind::Exec, open, async {}, busy, forever).await;
            assert_eq!(ended.available_permits(), usize::from(ends_with_input));
        }
    }

    #[test]
    fn sizes_come_in_pieces_and_several_at_a_time() {
        let mut held = Vec::new();
        let mut push =
            |text: &'static str| last_size(&mut held, &Bytes::from_static(text.as_bytes()));
        let size = |width, height| Some(TerminalSize { width, height });
        assert_eq!(push("{\"Width\":80,"), None);
        assert_eq!(push("\"Height\":24}\n"), size(80, 24));
        let two = "{\"Width\":1,\"Height\":2}{\"Width\":3,\"Height\":4}{\"Wid";
        assert_eq!(push(two), size(3, 4));
        assert_eq!(push("th\":5,\"Height\":6}"), size(5, 6));
        assert_eq!(push("rubbish"), None);
        assert_eq!(push("{\"Width\":7,\"Height\":8}"), size(7, 8));
        assert_eq!(push("{\"Width\":70000,\"Height\":8}"), None);
    }
}
