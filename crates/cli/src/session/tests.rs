//! Sessions in front of a pipe and of a terminal, with a process made of channels.

use std::{
    fs::File,
    io::{self, Read as _, Write as _},
    os::fd::OwnedFd,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use bytes::Bytes;
use rubelet_cri::{CriError, CriErrorKind, CriResult};
use rubelet_streaming::{RemoteProcess, SessionExit, Sink, Source, TerminalSize};
use rustix::{
    pipe::PipeFlags,
    pty::{self, OpenptFlags},
    termios::{self, LocalModes, Winsize},
};
use tokio::sync::{mpsc, oneshot};

use super::{
    super::{failure::CommandError, signals::EndSignals, streams::Streams},
    raw::RawTerminal,
    run::run,
};

/// What a process saw.
#[derive(Debug, PartialEq, Eq)]
enum ProcessInput {
    Input(Bytes),
    InputEnd,
    Size(u16, u16),
}

/// The other end of a session.
struct Process {
    seen: mpsc::UnboundedReceiver<ProcessInput>,
    stdout: mpsc::Sender<Bytes>,
    exit: oneshot::Sender<CriResult<SessionExit>>,
}

struct Stdin(mpsc::UnboundedSender<ProcessInput>);

#[async_trait]
impl Sink for Stdin {
    async fn write(&mut self, bytes: Bytes) -> io::Result<()> {
        let sent = self.0.send(ProcessInput::Input(bytes));
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
    async fn close(&mut self) -> io::Result<()> {
        let sent = self.0.send(ProcessInput::InputEnd);
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

struct Stdout(mpsc::Receiver<Bytes>);

#[async_trait]
impl Source for Stdout {
    async fn read(&mut self) -> io::Result<Option<Bytes>> {
        Ok(self.0.recv().await)
    }
}

fn process(stdin: bool) -> (RemoteProcess, Process) {
    let (see, seen) = mpsc::unbounded_channel();
    let (stdout, output) = mpsc::channel(4);
    let (exit, exited) = oneshot::channel();
    let input = see.clone();
    let remote = RemoteProcess {
        stdin: stdin.then(|| Box::new(Stdin(input)) as Box<dyn Sink>),
        stdout: Some(Box::new(Stdout(output))),
        stderr: None,
        resize: Some(Arc::new(move |TerminalSize { width, height }| {
            let _ = see.send(ProcessInput::Size(width, height));
        })),
        exit: Box::pin(async {
            let lost = CriError::new("Exec", CriErrorKind::Unavailable, "the agent stopped");
            exited.await.unwrap_or(Err(lost))
        }),
    };
    (remote, Process { seen, stdout, exit })
}

fn pipe() -> (OwnedFd, OwnedFd) {
    rustix::pipe::pipe_with(PipeFlags::CLOEXEC).unwrap()
}

/// Streams of a command in a pipeline, with the ends that the test holds: of stdin and of stdout.
fn pipeline() -> (Streams, File, File) {
    let (stdin, to) = pipe();
    let (from, stdout) = pipe();
    let stderr = stdout.try_clone().unwrap();
    let streams = Streams {
        stdin,
        stdout,
        stderr,
    };
    (streams, to.into(), from.into())
}

#[tokio::test]
async fn input_ends_where_it_ends_here_and_output_goes_on() {
    let (remote, mut process) = process(true);
    let (streams, mut to, mut from) = pipeline();
    let session = tokio::spawn(async move { run(remote, &streams, &mut None, false).await });
    to.write_all(b"question").unwrap();
    let question = ProcessInput::Input(Bytes::from_static(b"question"));
    assert_eq!(process.seen.recv().await, Some(question));
    drop(to);
    assert_eq!(process.seen.recv().await, Some(ProcessInput::InputEnd));
    let answer = Bytes::from_static(b"answer");
    process.stdout.send(answer).await.unwrap();
    process.exit.send(Ok(SessionExit::Code(3))).unwrap();
    drop(process.stdout);
    let ended = session.await.unwrap().unwrap();
    assert_eq!(ended, Ok(SessionExit::Code(3)));
    let mut text = String::new();
    from.read_to_string(&mut text).unwrap();
    assert_eq!(text, "answer");
}

#[tokio::test]
async fn without_stdin_nothing_is_taken_from_it() {
    let (remote, process) = process(false);
    let (streams, mut to, _from) = pipeline();
    to.write_all(b"for the next command").unwrap();
    drop(process.stdout);
    process.exit.send(Ok(SessionExit::Code(0))).unwrap();
    let ended = run(remote, &streams, &mut None, false).await.unwrap();
    assert_eq!(ended, Ok(SessionExit::Code(0)));
    let mut left = [0; 64];
    let read = File::from(streams.stdin).read(&mut left).unwrap();
    assert_eq!(&left[..read], b"for the next command");
}

#[tokio::test]
async fn a_reader_who_leaves_ends_the_session_quietly() {
    let (remote, process) = process(true);
    let (streams, _to, from) = pipeline();
    drop(from);
    // As `yes` does: a child that another test is starting may have a copy of the reader's end until
    // its program begins, and lets some output pass.
    let output = async {
        while process
            .stdout
            .send(Bytes::from_static(b"y\n"))
            .await
            .is_ok()
        {
            tokio::task::yield_now().await;
        }
        std::future::pending::<()>().await;
    };
    let mut resize = None;
    let ended = tokio::select! {
        ended = run(remote, &streams, &mut resize, false) => ended,
        () = output => unreachable!("it waits"),
    };
    assert!(matches!(ended, Err(CommandError::ReaderGone)), "{ended:?}");
}

#[tokio::test]
async fn a_slow_reader_holds_the_output_and_not_the_input() {
    let (remote, mut process) = process(true);
    let (streams, mut to, mut from) = pipeline();
    let session = tokio::spawn(async move { run(remote, &streams, &mut None, false).await });
    // More than the pipe holds and the session keeps.
    let block = Bytes::from(vec![b'x'; 64 << 10]);
    let sent = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&sent);
    let stdout = process.stdout;
    let sender = tokio::spawn(async move {
        for _ in 0..32 {
            stdout.send(block.clone()).await.unwrap();
            *counted.lock().unwrap() += 1;
        }
    });
    to.write_all(b"keys").unwrap();
    let keys = ProcessInput::Input(Bytes::from_static(b"keys"));
    assert_eq!(process.seen.recv().await, Some(keys));
    assert!(*sent.lock().unwrap() < 32);
    let reader = std::thread::spawn(move || {
        let mut all = Vec::new();
        from.read_to_end(&mut all).unwrap();
        all.len()
    });
    sender.await.unwrap();
    process.exit.send(Ok(SessionExit::Code(0))).unwrap();
    session.await.unwrap().unwrap().unwrap();
    assert_eq!(reader.join().unwrap(), 32 * (64 << 10));
}

/// A terminal: the side of the program, and that of the person.
fn terminal() -> (OwnedFd, OwnedFd) {
    let person = pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    pty::unlockpt(&person).unwrap();
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
    let program = pty::ioctl_tiocgptpeer(&person, flags).unwrap();
    let size = Winsize {
        ws_row: 24,
        ws_col: 80,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    termios::tcsetwinsize(&program, size).unwrap();
    (program, person)
}

/// Whether the terminal edits lines and makes signals of keys, as for a shell.
fn is_cooked(terminal: &OwnedFd) -> bool {
    let modes = termios::tcgetattr(terminal).unwrap().local_modes;
    modes.contains(LocalModes::ICANON | LocalModes::ISIG | LocalModes::ECHO)
}

fn on_terminal(program: &OwnedFd) -> Streams {
    Streams {
        stdin: program.try_clone().unwrap(),
        stdout: program.try_clone().unwrap(),
        stderr: program.try_clone().unwrap(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_passes_every_key_on_and_is_restored() {
    let (program, person) = terminal();
    let (remote, mut process) = process(true);
    let streams = on_terminal(&program);
    let mut raw = Some((
        RawTerminal::enter(&program).unwrap(),
        EndSignals::catch().unwrap(),
    ));
    assert!(!is_cooked(&program));
    let session = tokio::spawn(async move { run(remote, &streams, &mut raw, true).await });
    // An attachment's program draws again for the first size, and keeps the second one.
    assert_eq!(process.seen.recv().await, Some(ProcessInput::Size(81, 25)));
    assert_eq!(process.seen.recv().await, Some(ProcessInput::Size(80, 24)));
    let mut person = File::from(person);
    person.write_all(b"\x03\x1a\x04").unwrap();
    let keys = ProcessInput::Input(Bytes::from_static(b"\x03\x1a\x04"));
    assert_eq!(process.seen.recv().await, Some(keys));
    process
        .stdout
        .send(Bytes::from_static(b"hi\n"))
        .await
        .unwrap();
    let mut shown = [0; 3];
    person.read_exact(&mut shown).unwrap();
    // Nothing is added to a line feed, and no key was echoed.
    assert_eq!(&shown, b"hi\n");
    drop((process.exit, process.stdout));
    let ended = session.await.unwrap().unwrap();
    assert_eq!(ended.unwrap_err().message, "the agent stopped");
    assert!(is_cooked(&program));
}

#[tokio::test]
async fn a_signal_ends_the_session_with_the_terminal_restored() {
    let (program, _person) = terminal();
    let (remote, mut process) = process(true);
    let streams = on_terminal(&program);
    let mut raw = Some((
        RawTerminal::enter(&program).unwrap(),
        EndSignals::catch().unwrap(),
    ));
    let session = tokio::spawn(async move { run(remote, &streams, &mut raw, false).await });
    assert_eq!(process.seen.recv().await, Some(ProcessInput::Size(80, 24)));
    // To this process: other tests with sessions end by it too, but those on terminals only.
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::QUIT)
        .unwrap();
    let ended = session.await.unwrap();
    assert!(matches!(ended, Err(CommandError::Exit(131))), "{ended:?}");
    assert!(is_cooked(&program));
}

#[test]
fn a_panic_restores_the_terminal() {
    let (program, _person) = terminal();
    let copy = program.try_clone().unwrap();
    let thread = std::thread::spawn(move || {
        let _raw = RawTerminal::enter(&copy).unwrap();
        panic!("on purpose");
    });
    thread.join().unwrap_err();
    assert!(is_cooked(&program));
}
