//! Sends echo requests and looks for them at each interface on the way.

use std::{
    net::SocketAddr,
    ops::ControlFlow,
    os::fd::{AsFd as _, BorrowedFd},
    time::Duration,
};

use rubelet_base::error_text;
use rubelet_host::{
    packet_programs::PacketProgram,
    packet_tap::{Direction, PacketTap},
};
use rustix::event::PollFlags;

use super::{
    event::PathEvent,
    judge::{LastHop, PathSeen, PointCount, judge},
    sighting::{Sighting, sighting},
    tracer::Tracer,
};
use crate::{
    clock::{SessionClock, random},
    echo_socket::{EchoSocket, SocketError},
    ping::{driver::PingError, run::sequence_of},
    sockets::OpenSocket,
    stamp::{SessionKey, Stamp},
    wait::wait,
};

/// Requests that are sent.
const REQUESTS: u64 = 3;
/// Time between two requests.
const INTERVAL: Duration = Duration::from_millis(100);
/// Time to wait for replies after the last request: longer than the kernel takes to report that
/// an address does not exist on the link.
const PATIENCE: Duration = Duration::from_millis(3500);
/// Bytes of data.
const SIZE: usize = 56;
/// Packets of an interface, and datagrams of a socket, that are read before others have their turn.
const AT_ONCE: u32 = 256;
/// The beginning of a packet that is looked at, in bytes.
const LONGEST: usize = 256;

/// An interface on the way.
#[derive(Debug)]
pub struct PathPoint {
    /// Its name, with what it is.
    pub name: String,
    /// Its packets.
    pub tap: PacketTap,
    /// The way of requests through it; replies go the other way.
    pub requests: Direction,
}

/// A path to follow.
#[derive(Debug)]
pub struct PathInputs {
    /// The target of the requests.
    pub target: SocketAddr,
    /// The interfaces on this machine, in the order of the requests.
    pub points: Vec<PathPoint>,
    /// The next hop after the last one.
    pub last_hop: LastHop,
    /// Follows the rules that packets meet; `None` if this kernel can't.
    pub tracer: Option<Tracer>,
    /// Other packet programs on this machine, which can't be traced.
    pub programs: Vec<PacketProgram>,
}

/// Follows a path and reports what passed each interface, and where it ends. Blocks the thread.
///
/// # Errors
/// A socket can't be opened, or waiting fails.
pub fn follow(
    mut inputs: PathInputs,
    open: &dyn OpenSocket,
    stop: BorrowedFd<'_>,
    report: &mut dyn FnMut(PathEvent) -> ControlFlow<()>,
) -> Result<(), PingError> {
    let mut seen = PathSeen {
        points: inputs.points.iter().map(count).collect(),
        last_hop: inputs.last_hop,
        programs: std::mem::take(&mut inputs.programs),
        ..PathSeen::default()
    };
    match EchoSocket::open(open, inputs.target, None, None) {
        Ok(socket) => {
            let mut course = Course {
                socket,
                clock: SessionClock::start(),
                key: SessionKey::new(random()),
                sent: 0,
                last: Duration::ZERO,
            };
            if course.run(&mut inputs, stop, &mut seen)?.is_break() {
                return Ok(());
            }
        }
        Err(SocketError::Connect(address, error)) => {
            let error = error_text(&error);
            seen.errors
                .push(format!("The pod has no way to {address}: {error}"));
        }
        Err(source) => {
            let target = inputs.target.ip().to_string();
            return Err(PingError::Socket { target, source });
        }
    }
    let finding = judge(&seen);
    let points = seen.points.into_iter().map(|point| PathEvent::Point {
        name: point.name,
        requests: point.requests,
        replies: point.replies,
    });
    for event in points.chain([PathEvent::Result { finding }]) {
        if report(event).is_break() {
            break;
        }
    }
    Ok(())
}

fn count(point: &PathPoint) -> PointCount {
    PointCount {
        name: point.name.clone(),
        requests: 0,
        replies: 0,
    }
}

struct Course {
    socket: EchoSocket,
    clock: SessionClock,
    key: SessionKey,
    sent: u64,
    /// When the last request was sent.
    last: Duration,
}

impl Course {
    /// Breaks if it is to stop.
    fn run(
        &mut self,
        inputs: &mut PathInputs,
        stop: BorrowedFd<'_>,
        seen: &mut PathSeen,
    ) -> Result<ControlFlow<()>, PingError> {
        loop {
            let now = self.clock.now();
            let next = match self.sent {
                0 => now,
                REQUESTS => self.last + PATIENCE,
                _ => self.last + INTERVAL,
            };
            if next <= now {
                if self.sent == REQUESTS {
                    return Ok(ControlFlow::Continue(()));
                }
                self.send(now, seen);
                continue;
            }
            let sockets: Vec<BorrowedFd<'_>> = inputs
                .points
                .iter()
                .map(|point| point.tap.as_fd())
                .chain(inputs.tracer.as_ref().map(Tracer::as_fd))
                .chain([self.socket.as_fd()])
                .collect();
            let ready = wait(stop, &sockets, PollFlags::IN, next.saturating_sub(now));
            if ready.map_err(PingError::Wait)?.is_none() {
                return Ok(ControlFlow::Break(()));
            }
            self.read(inputs, seen);
            if seen.answers >= REQUESTS {
                // What passed the interfaces while the sockets were read.
                self.read(inputs, seen);
                return Ok(ControlFlow::Continue(()));
            }
        }
    }

    fn send(&mut self, now: Duration, seen: &mut PathSeen) {
        let stamp = Stamp {
            index: self.sent,
            sent: now,
        };
        let mut data = Vec::new();
        self.key.write(stamp, SIZE, &mut data);
        if let Err(error) = self.socket.send(sequence_of(self.sent), &data) {
            let error = error_text(&error);
            seen.errors
                .push(format!("The kernel refuses to send: {error}"));
        }
        self.sent += 1;
        self.last = now;
    }

    fn read(&mut self, inputs: &mut PathInputs, seen: &mut PathSeen) {
        let mut buffer = [0; LONGEST];
        for (point, count) in inputs.points.iter().zip(&mut seen.points) {
            for _ in 0..AT_ONCE {
                // An interface that is gone shows nothing more.
                let Ok(Some((direction, packet))) = point.tap.next(&mut buffer) else {
                    break;
                };
                let found = sighting(packet, self.key, SIZE);
                match (found, direction == point.requests) {
                    (Some(Sighting::Request), true) => count.requests += 1,
                    (Some(Sighting::Reply), false) => count.replies += 1,
                    _ => {}
                }
            }
        }
        // Lost reports leave the cause unknown, and nothing else.
        let dropped = inputs
            .tracer
            .as_mut()
            .and_then(|tracer| tracer.dropped().ok());
        for one in dropped.into_iter().flatten() {
            if seen.dropped.len() < REQUESTS as usize {
                seen.dropped.push(one);
            }
        }
        let mut patience = AT_ONCE;
        while let Some(received) = self.socket.receive(&mut patience) {
            if self.key.read(received.reply.data, SIZE).is_ok() {
                seen.answers += 1;
            }
        }
        while let Some(error) = self.socket.receive_error(&mut patience) {
            if seen.errors.len() < REQUESTS as usize {
                let text = error.text();
                seen.errors.push(match error.from {
                    Some(from) => format!("{from} says: {text}"),
                    None => text,
                });
            }
        }
    }
}
