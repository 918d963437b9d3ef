//! Programs that continue printing, such as `get pods -w`.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rubelet_testbed::{clock, wait};

/// A program whose lines of standard output and standard error are read as they arrive. It is
/// killed when the value is dropped.
pub(crate) struct Lines {
    child: Child,
    input: Option<ChildStdin>,
    line: String,
    lines: Receiver<String>,
    seen: Vec<String>,
    readers: Vec<JoinHandle<()>>,
}

impl Lines {
    /// Starts the program.
    pub(crate) fn start(command: &mut Command) -> Self {
        Self::spawn(command.stdin(Stdio::null()))
    }

    /// Starts the program with this text on its standard input, which stays open.
    pub(crate) fn start_with_input(command: &mut Command, bytes: &[u8]) -> Self {
        let mut lines = Self::spawn(command.stdin(Stdio::piped()));
        let input = lines.input.as_mut().unwrap();
        input.write_all(bytes).unwrap();
        lines
    }

    fn spawn(command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let readers = vec![
            read(child.stdout.take().unwrap(), sender.clone()),
            read(child.stderr.take().unwrap(), sender),
        ];
        let line = rubelet_testbed::command::line(command);
        Self {
            input: child.stdin.take(),
            child,
            line,
            lines,
            seen: Vec::new(),
            readers,
        }
    }

    /// Waits for a line that matches, among those that were not awaited yet.
    pub(crate) fn wait(
        &mut self,
        what: &str,
        timeout: Duration,
        wanted: impl Fn(&str) -> bool,
    ) -> String {
        let deadline = clock::now() + wait::patiently(timeout);
        loop {
            let left = deadline.saturating_duration_since(clock::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if wanted(&line) {
                        return line;
                    }
                }
                Err(reason) => {
                    let why = match reason {
                        RecvTimeoutError::Timeout => "has not printed",
                        RecvTimeoutError::Disconnected => "has ended before it printed",
                    };
                    panic!("`{}` {why} {what}; it printed {:#?}", self.line, self.seen);
                }
            }
        }
    }

    /// All lines that were read by [`Lines::wait`] so far.
    pub(crate) fn seen(&self) -> &[String] {
        &self.seen
    }

    /// Waits for the program's exit; returns the exit code.
    pub(crate) fn end(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

/// Output of a program.
#[derive(Debug)]
pub(crate) struct ProgramOutput {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl ProgramOutput {
    /// Whether standard error contains a text.
    pub(crate) fn said(&self, words: &str) -> bool {
        self.stderr.contains(words)
    }
}

/// Runs a program with this standard input; returns its output and exit code.
pub(crate) fn run_with_input(command: &mut Command, bytes: &[u8]) -> (ProgramOutput, i32) {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        // A program may exit without reading it.
        scope.spawn(move || drop(input.write_all(bytes)));
        child.wait_with_output().unwrap()
    });
    let written = ProgramOutput {
        stdout: output.stdout,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    (written, output.status.code().unwrap_or(-1))
}

impl Drop for Lines {
    fn drop(&mut self) {
        // It may have exited by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        for reader in self.readers.drain(..) {
            let _ = reader.join();
        }
    }
}

fn read(from: impl Read + Send + 'static, into: Sender<String>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if into.send(line).is_err() {
                return;
            }
        }
    })
}
