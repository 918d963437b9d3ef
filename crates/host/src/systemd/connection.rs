//! One connection to systemd.

use std::{
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    time::Duration,
};

use super::{Systemd, SystemdError};
use crate::dbus::{
    message::{BUS, Call, Incoming, Reply, START, SYSTEMD, Signal, decode, length},
    wire::Writer,
};

/// Timeout of a reply. systemd's own timeout for starting a scope is longer than a container start
/// may take.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) struct Connection<'a> {
    systemd: &'a Systemd,
    stream: UnixStream,
    serial: u32,
    /// Jobs that ended while another reply was awaited, with their results. A job may end before
    /// the reply that names it.
    ended: Vec<(String, String)>,
}

impl<'a> Connection<'a> {
    pub(super) fn open(systemd: &'a Systemd) -> Result<Self, SystemdError> {
        let stream = connect(systemd).map_err(|source| unreachable(systemd, source))?;
        let mut connection = Self {
            systemd,
            stream,
            serial: 0,
            ended: Vec::new(),
        };
        connection.greet()?;
        Ok(connection)
    }

    fn greet(&mut self) -> Result<(), SystemdError> {
        if self.systemd.bus {
            self.call(&Call::new(BUS, "Hello", "", Writer::default()))?;
            let mut rule = Writer::default();
            rule.text(&format!(
                "type='signal',interface='{}',member='JobRemoved'",
                SYSTEMD.interface
            ));
            self.call(&Call::new(BUS, "AddMatch", "s", rule))?;
        }
        // Without it systemd sends no signals. It never fails.
        self.call(&Call::new(SYSTEMD, "Subscribe", "", Writer::default()))?;
        Ok(())
    }

    /// Calls a method; returns the reply, which may be an error.
    pub(super) fn call(&mut self, call: &Call) -> Result<Reply, SystemdError> {
        self.serial += 1;
        let message = call.encode(self.serial, self.systemd.bus);
        let sent = self.stream.write_all(&message);
        sent.map_err(|source| unreachable(self.systemd, source))?;
        loop {
            match self.receive()? {
                Incoming::Reply(serial, reply) if serial == self.serial => return Ok(reply),
                Incoming::Signal(signal) => self.ended.extend(ended_job(&signal)),
                Incoming::Reply(..) | Incoming::Other => {}
            }
        }
    }

    /// Waits for the end of a job.
    pub(super) fn wait_for(&mut self, job: &str, unit: &str) -> Result<(), SystemdError> {
        loop {
            let ended = self.ended.iter().find(|(ended, _)| ended == job);
            if let Some((_, result)) = ended {
                if result == "done" {
                    return Ok(());
                }
                return Err(SystemdError::Job {
                    unit: unit.to_owned(),
                    result: result.clone(),
                });
            }
            if let Incoming::Signal(signal) = self.receive()? {
                self.ended.extend(ended_job(&signal));
            }
        }
    }

    fn receive(&mut self) -> Result<Incoming, SystemdError> {
        let unreadable = |what| SystemdError::Unreadable {
            socket: self.systemd.socket.clone(),
            what,
        };
        let mut message = vec![0; START];
        let read = self.stream.read_exact(&mut message);
        read.map_err(|source| unreachable(self.systemd, source))?;
        let length = length(&message).map_err(unreadable)?;
        message.resize(length.max(START), 0);
        let read = self.stream.read_exact(&mut message[START..]);
        read.map_err(|source| unreachable(self.systemd, source))?;
        let received = decode(&message).map_err(unreadable)?;
        Ok(received.incoming)
    }
}

/// The job and its result in a signal that a job has ended.
fn ended_job(signal: &Signal) -> Option<(String, String)> {
    if signal.member != "JobRemoved" {
        return None;
    }
    // Number, path, unit, result.
    let mut values = signal.body.of("uoss")?;
    values.number()?;
    let job = values.text()?.to_owned();
    values.text()?;
    Some((job, values.text()?.to_owned()))
}

fn unreachable(systemd: &Systemd, source: io::Error) -> SystemdError {
    let source = match source.kind() {
        io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
        _ => source,
    };
    SystemdError::Unreachable {
        socket: systemd.socket.clone(),
        source,
    }
}

/// Connects and authenticates by the socket's credentials.
fn connect(systemd: &Systemd) -> io::Result<UnixStream> {
    let mut stream = UnixStream::connect(&systemd.socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let user = rustix::process::geteuid().as_raw().to_string();
    let user = hex::encode(user);
    // Both at once: systemd loses a message that arrives in one read with the second line.
    stream.write_all(format!("\0AUTH EXTERNAL {user}\r\nBEGIN\r\n").as_bytes())?;
    let answer = line(&mut stream)?;
    if !answer.starts_with("OK ") {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("it answered `{answer}` to the user id"),
        ));
    }
    Ok(stream)
}

/// The next line, byte by byte: what follows it is not text.
fn line(stream: &mut UnixStream) -> io::Result<String> {
    let mut line = Vec::new();
    let mut byte = [0];
    while !line.ends_with(b"\r\n") {
        if line.len() > 512 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        stream.read_exact(&mut byte)?;
        line.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
}
