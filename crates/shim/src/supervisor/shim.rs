//! The state of a shim, and its loop.

use std::{
    collections::BTreeMap,
    fs, io,
    os::{
        fd::{AsFd as _, AsRawFd as _, OwnedFd},
        unix::fs::PermissionsExt as _,
    },
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

use rubelet_base::ErrorChain;
use rubelet_host::{CgroupFs, alloc, cgroup::CgroupTarget};
use rustix::{
    event::Timespec,
    net::{AddressFamily, SocketFlags, SocketType},
};

use super::{
    attachments::Attachments,
    background_flush::BackgroundFlush,
    children::Children,
    connection::{Connection, ReadState, ReplyTo},
    container::Container,
    events::Events,
    oom_ledger::OomKillLedger,
    output::OutputContext,
    process::ShimSetup,
    sandbox::Sandbox,
    signals,
    start_error::ShimStartError,
    watch::{EpollSet, EventSource, Interest},
};
use crate::{
    clock,
    log::TimestampFormatter,
    protocol::{
        CallFailure, CallResult, DecodedMessage, Event, FailureKind, FromAgent, FromShim, Hello,
        ShimReply, VERSION,
    },
    spawn::{self, SOCKET},
};

/// Maximum connections; beyond that the oldest is closed, but never the subscriber's.
const CONNECTIONS: usize = 8;

/// Join the final cgroup after 1 s without events, so that it does not delay the start of the pod.
const JOIN_AFTER: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// A message that came before `Hello`.
#[derive(Debug, thiserror::Error)]
#[error("the agent did not send Hello first")]
struct NotGreeted;

/// A shim.
#[derive(Debug)]
pub(super) struct Shim {
    dir: PathBuf,
    pub(super) started_at_ns: u64,
    pub(super) watch: EpollSet,
    listener: OwnedFd,
    pub(super) children: Children,
    connections: BTreeMap<u32, Connection>,
    subscriber: Option<u32>,
    last_slot: u32,
    cgroups: Option<CgroupFs>,
    /// The shim's cgroup, until it is joined in the unified hierarchy.
    to_join: Option<CgroupTarget>,
    pub(super) sandbox: Option<Sandbox>,
    pub(super) containers: BTreeMap<u32, Container>,
    pub(super) oom_kills: OomKillLedger,
    pub(super) attachments: Attachments,
    /// Flushes exit records to disk.
    pub(super) flush: BackgroundFlush,
    pub(super) events: Events,
    pub(super) stamp: TimestampFormatter,
    /// The pending `Shutdown` request.
    pub(super) pending_shutdown: Option<ReplyTo>,
    /// The request in progress, which gets a failure after a panic.
    handling: Option<ReplyTo>,
    /// Freed memory may have to be returned to the kernel.
    needs_trim: bool,
    ended: bool,
}

impl Shim {
    /// A shim that listens in its directory.
    pub(super) fn new(dir: PathBuf, prepared: ShimSetup) -> Result<Self, ShimStartError> {
        let listener = listen(&dir)
            .map_err(|error| ShimStartError::step(format!("listen in {}", dir.display()), error))?;
        let watch =
            EpollSet::new().map_err(|error| ShimStartError::step("wait for events", error))?;
        let children = signals::children()
            .map_err(|error| ShimStartError::step("watch its children", error))?;
        let mut events = Events::default();
        for warning in prepared.warnings {
            events.keep_warning(warning);
        }
        watch
            .add(&children, EventSource::Children, Interest::Read)
            .and_then(|()| watch.add(&listener, EventSource::Listener, Interest::Read))
            .map_err(|error| ShimStartError::step("wait for events", error))?;
        Ok(Self {
            dir,
            started_at_ns: clock::now_ns(),
            watch,
            listener,
            children: Children::new(children),
            connections: BTreeMap::new(),
            subscriber: None,
            last_slot: 0,
            cgroups: prepared.cgroups,
            to_join: prepared.to_join,
            sandbox: None,
            containers: BTreeMap::new(),
            oom_kills: OomKillLedger::default(),
            attachments: Attachments::default(),
            flush: BackgroundFlush::default(),
            events,
            stamp: TimestampFormatter::default(),
            pending_shutdown: None,
            handling: None,
            needs_trim: true,
            ended: false,
        })
    }

    /// Runs until `Shutdown`, or until the agent disconnects before a sandbox was created.
    pub(super) fn run(&mut self) -> io::Result<()> {
        while !self.ended {
            if self.needs_trim {
                self.needs_trim = false;
                alloc::trim();
            }
            let most = self.to_join.as_ref().map(|_| &JOIN_AFTER);
            let mut sources = self.watch.wait(most)?.peekable();
            // No event: the timeout has passed, or a signal came. Joining now delays nothing.
            if sources.peek().is_none()
                && let Some(cgroup) = self.to_join.take()
                && let Err(error) = cgroup.join_self()
            {
                let message = format!("the shim cannot join its cgroup: {error}");
                self.report(Event::Warning { message });
            }
            for source in sources {
                // A panic must not end the shim: nothing could take over its containers' streams
                // and exits.
                let result = catch_unwind(AssertUnwindSafe(|| self.handle(source)));
                if result.is_err() {
                    self.report_panic();
                }
            }
        }
        let _ = fs::remove_file(self.dir.join(SOCKET));
        Ok(())
    }

    fn report_panic(&mut self) {
        let message = super::process::last_panic();
        if let Some(to) = self.handling.take() {
            self.reply(to, Err(CallFailure::new(FailureKind::Internal, &*message)));
        }
        self.report(Event::Warning { message });
    }

    fn handle(&mut self, source: EventSource) {
        match source {
            EventSource::Children => self.reap(),
            EventSource::Listener => self.accept(),
            EventSource::Connection(slot) => self.on_readable(slot),
            EventSource::Container(slot) => self.advance_container(slot),
            EventSource::Exec(slot) => self.advance_exec(slot),
            EventSource::Output(slot, index) => {
                if let Some(container) = self.containers.get_mut(&slot) {
                    let warning = container.output.read(
                        index,
                        &mut OutputContext {
                            slot,
                            watch: &self.watch,
                            stamp: &mut self.stamp,
                            attachments: &mut self.attachments,
                        },
                    );
                    self.warn(warning);
                    self.report_overruns();
                }
            }
            EventSource::Feed(slot) | EventSource::Input(slot) => {
                if let Some(container) = self.containers.get_mut(&slot) {
                    let once = container.what.stdin_once;
                    container.input.advance(&self.watch, slot, once);
                }
            }
            EventSource::Attachment(number) => {
                self.attachments.advance(number, &self.watch);
                self.needs_trim = true;
            }
        }
    }

    /// A number that is never reused.
    pub(super) fn new_slot(&mut self) -> u32 {
        self.last_slot += 1;
        self.last_slot
    }

    /// The cgroup hierarchies, detected on first use.
    pub(super) fn cgroups(&mut self) -> Result<&CgroupFs, CallFailure> {
        if self.cgroups.is_none() {
            let found = CgroupFs::detect(Path::new("/sys/fs/cgroup")).map_err(|error| {
                crate::runtime::host_failure("cannot detect the cgroup hierarchies", error)
            })?;
            self.cgroups = Some(found);
        }
        Ok(self.cgroups.as_ref().expect("it was set above"))
    }

    /// The container of that identifier.
    pub(super) fn find(&self, id: &str) -> Option<u32> {
        let found = self.containers.iter().find(|(_, one)| one.what.id == id);
        found.map(|(slot, _)| *slot)
    }

    /// Sends an event to the subscriber, and keeps it until it is acknowledged.
    pub(super) fn report(&mut self, event: Event) {
        let sequence = self.events.push(event.clone());
        if let Some(slot) = self.subscriber {
            self.send(slot, &FromShim::Event { sequence, event }, Vec::new());
        }
        self.needs_trim = true;
    }

    /// Reports a warning, if there is one.
    pub(super) fn warn(&mut self, message: Option<String>) {
        if let Some(message) = message {
            self.report(Event::Warning { message });
        }
    }

    /// Reports an error as a warning.
    pub(super) fn warn_of(&mut self, what: &str, error: &(dyn std::error::Error + 'static)) {
        self.warn(Some(format!("{what}: {}", ErrorChain(error))));
    }

    /// Replies to a request; does nothing if the agent has disconnected.
    pub(super) fn reply(&mut self, to: ReplyTo, result: Result<ShimReply, CallFailure>) {
        self.reply_with(to, result, Vec::new());
    }

    /// Replies to a request with file descriptors.
    pub(super) fn reply_with(
        &mut self,
        to: ReplyTo,
        result: Result<ShimReply, CallFailure>,
        fds: Vec<OwnedFd>,
    ) {
        let reply = FromShim::Reply {
            id: to.id,
            outcome: CallResult::from(result),
        };
        self.send(to.connection, &reply, fds);
        self.needs_trim = true;
    }

    fn send(&mut self, slot: u32, message: &FromShim, fds: Vec<OwnedFd>) {
        let Some(connection) = self.connections.get_mut(&slot) else {
            return;
        };
        match connection.send(message, fds) {
            Ok(()) => self.wait_to_send(slot),
            Err(_) => self.hang_up(slot),
        }
    }

    fn wait_to_send(&mut self, slot: u32) {
        let Some(connection) = self.connections.get_mut(&slot) else {
            return;
        };
        let blocked = connection.is_waiting();
        if std::mem::replace(&mut connection.blocked, blocked) == blocked {
            return;
        }
        let interest = if blocked {
            Interest::Both
        } else {
            Interest::Read
        };
        let changed =
            self.watch
                .change(&connection.socket, EventSource::Connection(slot), interest);
        if changed.is_err() {
            self.hang_up(slot);
        }
    }

    /// Serves an agent on a connected socket.
    pub(super) fn take_connection(&mut self, socket: OwnedFd) {
        let Ok(connection) = Connection::new(socket) else {
            return;
        };
        if self.connections.len() >= CONNECTIONS {
            let mut slots = self.connections.keys().copied();
            if let Some(oldest) = slots.find(|slot| Some(*slot) != self.subscriber) {
                self.hang_up(oldest);
            }
        }
        let slot = self.new_slot();
        let watched = self.watch.add(
            &connection.socket,
            EventSource::Connection(slot),
            Interest::Read,
        );
        if watched.is_ok() {
            self.connections.insert(slot, connection);
        }
        self.needs_trim = true;
    }

    fn accept(&mut self) {
        let accepted = rustix::net::accept_with(&self.listener, SocketFlags::CLOEXEC);
        let Ok(socket) = accepted else {
            return;
        };
        let own = rustix::process::geteuid();
        // A client can start processes in the pod: only root, or the user that the shim runs as,
        // may connect.
        let allowed = rustix::net::sockopt::socket_peercred(&socket)
            .is_ok_and(|peer| peer.uid.is_root() || peer.uid == own);
        if allowed {
            self.take_connection(socket);
        }
    }

    fn on_readable(&mut self, slot: u32) {
        let Some(connection) = self.connections.get_mut(&slot) else {
            return;
        };
        // One source stands for both directions: the socket may have become writable.
        if connection.flush().is_err() {
            return self.hang_up(slot);
        }
        let mut messages = Vec::new();
        let reading = connection.read(&mut messages);
        self.wait_to_send(slot);
        for (message, fds) in messages {
            if let Err(error) = self.handle_message(slot, message, fds) {
                return self.refuse(slot, error.to_string());
            }
        }
        // After the messages: an agent may send some and close at once.
        match reading {
            ReadState::Open => {}
            ReadState::Closed => self.hang_up(slot),
            ReadState::Malformed(reason) => self.refuse(slot, reason),
        }
    }

    fn refuse(&mut self, slot: u32, reason: String) {
        self.send(slot, &FromShim::Goodbye { reason }, Vec::new());
        self.hang_up(slot);
    }

    fn handle_message(
        &mut self,
        slot: u32,
        message: DecodedMessage,
        fds: Vec<OwnedFd>,
    ) -> Result<(), NotGreeted> {
        let greeted = self.connections.get(&slot).is_some_and(|one| one.greeted);
        match message {
            DecodedMessage::Message(FromAgent::Hello(hello)) => self.greet(slot, &hello),
            _ if !greeted => return Err(NotGreeted),
            DecodedMessage::Message(FromAgent::Request(request)) => {
                let to = ReplyTo {
                    connection: slot,
                    id: request.id,
                };
                self.handling = Some(to);
                self.call(to, request.call, fds);
                self.handling = None;
            }
            DecodedMessage::Message(FromAgent::Ack { upto }) => {
                self.events.acknowledge(upto);
                self.needs_trim = true;
            }
            DecodedMessage::UnknownCall { id, why } => {
                let to = ReplyTo {
                    connection: slot,
                    id,
                };
                let text =
                    format!("this shim is of another release and does not support the call: {why}");
                self.reply(to, Err(CallFailure::new(FailureKind::Unsupported, text)));
            }
            DecodedMessage::Ignored => {}
        }
        Ok(())
    }

    fn greet(&mut self, slot: u32, hello: &Hello) {
        if let Some(connection) = self.connections.get_mut(&slot) {
            connection.greeted = true;
        }
        let own = Hello {
            version: VERSION.min(hello.version),
            subscribe: false,
            pid: std::process::id().cast_signed(),
        };
        self.send(slot, &FromShim::Hello(own), Vec::new());
        if hello.subscribe {
            self.subscriber = Some(slot);
            // Retries exit records that could not be written earlier.
            let slots: Vec<u32> = self.containers.keys().copied().collect();
            for slot in slots {
                self.record(slot);
            }
            let events: Vec<_> = self.events.unacknowledged().cloned().collect();
            for (sequence, event) in events {
                self.send(slot, &FromShim::Event { sequence, event }, Vec::new());
            }
        }
        self.needs_trim = true;
    }

    fn hang_up(&mut self, slot: u32) {
        if let Some(connection) = self.connections.remove(&slot) {
            self.watch.remove(&connection.socket);
        }
        if self.subscriber == Some(slot) {
            self.subscriber = None;
        }
        self.needs_trim = true;
        // A shim without a sandbox and a connection can't be found by any agent, so it exits.
        if self.connections.is_empty() && self.sandbox.is_none() && self.containers.is_empty() {
            self.ended = true;
        }
    }

    /// Completes a pending `Shutdown` once there are no containers.
    pub(super) fn finish_shutdown(&mut self) {
        let Some(to) = self.pending_shutdown.filter(|_| self.containers.is_empty()) else {
            return;
        };
        self.pending_shutdown = None;
        let problems = self.sandbox.take().map_or(Vec::new(), |one| one.end());
        for problem in problems {
            self.warn(Some(problem));
        }
        self.reply(to, Ok(ShimReply::Done));
        // The loop ends now, so the answers are written here.
        for connection in self.connections.values_mut() {
            connection.finish();
        }
        self.ended = true;
    }
}

/// Listens in the directory; fails if another shim listens on the socket.
fn listen(dir: &Path) -> io::Result<OwnedFd> {
    match spawn::connect(dir) {
        Ok(_) => {
            return Err(io::Error::new(
                io::ErrorKind::AddrInUse,
                "another shim listens on the socket",
            ));
        }
        Err(error) if error.is_gone() => {}
        Err(error) => return Err(io::Error::other(ErrorChain(&error).to_string())),
    }
    let path = dir.join(SOCKET);
    // No process listens on it: the file outlives its process, and bind(2) refuses an existing
    // path.
    let _ = fs::remove_file(&path);
    let directory = spawn::open_dir(dir)?;
    let socket = rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )?;
    debug_assert!(socket.as_raw_fd() > 2, "the standard streams are taken");
    rustix::net::bind(&socket, &spawn::address(directory.as_fd())?)?;
    // Before listen(2): until then no process can connect, whatever mode the umask left.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
    rustix::net::listen(&socket, 8)?;
    Ok(socket)
}
