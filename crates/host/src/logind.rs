//! systemd-logind: announcements of shutdowns of the machine, and locks that delay them
//! (`org.freedesktop.login1(5)`, and <https://systemd.io/INHIBITOR_LOCKS>).

mod drop_in;
#[cfg(any(test, feature = "logind_peer"))]
pub mod peer;

use std::{os::fd::OwnedFd, path::PathBuf, time::Duration};

use tokio::time::sleep;

pub use self::drop_in::DropInError;
use crate::dbus::{
    BusAddress, BusError,
    client::BusConnection,
    message::{BUS, Body, Call, SYSTEMD, Signal, Target},
    wire::Writer,
};

const LOGIND: Target = Target {
    destination: "org.freedesktop.login1",
    path: "/org/freedesktop/login1",
    interface: "org.freedesktop.login1.Manager",
};
const PROPERTIES: Target = Target {
    interface: "org.freedesktop.DBus.Properties",
    ..LOGIND
};

/// Directory of logind's configuration by others.
const DROP_INS: &str = "/etc/systemd/logind.conf.d";
/// logind reads its configuration some time after it was asked to. First pause before its limit is
/// read again, twice as long each time, and the number of such reads.
const REREAD_FIRST: Duration = Duration::from_millis(100);
const REREADS: u32 = 5;

/// Where logind is, and its configuration.
#[derive(Debug, Clone)]
pub struct Logind {
    address: BusAddress,
    drop_ins: PathBuf,
}

/// Why logind did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum LogindError {
    /// It was not reached, or refused.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// Its configuration can't be written.
    #[error(transparent)]
    DropIn(#[from] DropInError),
}

/// What logind announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogindEvent {
    /// A shutdown of the machine begins (true), or it was cancelled or failed (false).
    Shutdown(bool),
    /// logind was restarted: whether a shutdown is in progress must be asked, and its limits may
    /// have changed.
    Restarted,
}

/// A lock that delays shutdowns until it is dropped, or until logind's limit has passed.
#[derive(Debug)]
pub struct DelayLock {
    // logind has the other end of this pipe.
    _pipe: OwnedFd,
}

/// A connection to logind.
#[derive(Debug)]
pub struct LogindSession {
    bus: BusConnection,
    /// logind's own name on the bus: everybody on the machine can send signals that look like its
    /// own. Empty while it is not running.
    owner: String,
    drop_ins: PathBuf,
}

impl Logind {
    /// logind of this machine, on the bus at this address.
    #[must_use]
    pub fn on_bus(address: BusAddress) -> Self {
        Self {
            address,
            drop_ins: DROP_INS.into(),
        }
    }

    /// Connects, and follows announcements. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// The bus or logind can't be reached.
    pub async fn connect(&self) -> Result<LogindSession, LogindError> {
        let mut bus = BusConnection::open(&self.address).await?;
        let service = LOGIND.destination;
        bus.add_match(&format!(
            "type='signal',sender='{service}',interface='{}',member='PrepareForShutdown'",
            LOGIND.interface
        ))
        .await?;
        bus.add_match(&format!(
            "type='signal',sender='{0}',interface='{0}',member='NameOwnerChanged',arg0='{service}'",
            BUS.destination
        ))
        .await?;
        let mut session = LogindSession {
            bus,
            owner: String::new(),
            drop_ins: self.drop_ins.clone(),
        };
        // The bus starts it if it does not run.
        session.is_shutting_down().await?;
        session.owner = session.current_owner().await?;
        Ok(session)
    }
}

impl LogindSession {
    /// True if a shutdown of the machine has begun.
    ///
    /// # Errors
    /// See [`LogindError`].
    pub async fn is_shutting_down(&mut self) -> Result<bool, LogindError> {
        let value = self.property("PreparingForShutdown").await?;
        let is_preparing = variant(&value, "b").and_then(|mut reader| reader.bool());
        is_preparing.ok_or_else(|| self.strange())
    }

    /// logind's limit of delays by locks: `InhibitDelayMaxSec` of `logind.conf(5)`.
    ///
    /// # Errors
    /// See [`LogindError`].
    pub async fn longest_delay(&mut self) -> Result<Duration, LogindError> {
        let value = self.property("InhibitDelayMaxUSec").await?;
        let limit = variant(&value, "t").and_then(|mut reader| reader.number64());
        limit
            .map(Duration::from_micros)
            .ok_or_else(|| self.strange())
    }

    /// Raises that limit to a number of whole seconds, by a file in logind's configuration
    /// directory, and waits for a moment until it has an effect. Returns the limit then.
    ///
    /// # Errors
    /// See [`LogindError`].
    pub async fn raise_longest_delay(&mut self, needed: Duration) -> Result<Duration, LogindError> {
        drop_in::write(&self.drop_ins, needed).await?;
        let mut kill = Writer::default();
        kill.text("systemd-logind.service");
        kill.text("all");
        // SIGHUP: its releases before 255 know no other way.
        kill.number(1);
        self.bus
            .call(&Call::new(SYSTEMD, "KillUnit", "ssi", kill))
            .await?;
        let mut limit = Duration::ZERO;
        for attempt in 0..REREADS {
            sleep(REREAD_FIRST * 2_u32.pow(attempt)).await;
            limit = self.longest_delay().await?;
            if limit >= needed {
                break;
            }
        }
        Ok(limit)
    }

    /// Takes a lock that delays shutdowns. `who` and `why` are shown by `systemd-inhibit --list`.
    ///
    /// # Errors
    /// See [`LogindError`]; it is refused when a shutdown has begun.
    pub async fn delay(&mut self, who: &str, why: &str) -> Result<DelayLock, LogindError> {
        let mut body = Writer::default();
        for text in ["shutdown", who, why, "delay"] {
            body.text(text);
        }
        let call = Call::new(LOGIND, "Inhibit", "ssss", body);
        let (_, fds) = self.bus.call(&call).await?;
        let lock = fds.into_iter().next();
        let lock = lock.map(|pipe| DelayLock { _pipe: pipe });
        lock.ok_or_else(|| self.strange())
    }

    /// Waits for the next announcement.
    ///
    /// Cancel safety: dropping the future loses nothing.
    ///
    /// # Errors
    /// The connection is lost.
    pub async fn next(&mut self) -> Result<LogindEvent, LogindError> {
        loop {
            let signal = self.bus.signal().await?;
            if let Some(event) = self.event(&signal) {
                return Ok(event);
            }
        }
    }

    /// What a signal says, if it comes from logind, or from the bus about logind.
    fn event(&mut self, signal: &Signal) -> Option<LogindEvent> {
        let kind = (signal.interface.as_str(), signal.member.as_str());
        if kind == (LOGIND.interface, "PrepareForShutdown") {
            let is_own = !self.owner.is_empty() && signal.sender == self.owner;
            let begins = signal.body.of("b")?.bool()?;
            return is_own.then_some(LogindEvent::Shutdown(begins));
        }
        // Only the bus itself can send from this name.
        if kind != (BUS.interface, "NameOwnerChanged") || signal.sender != BUS.destination {
            return None;
        }
        let mut values = signal.body.of("sss")?;
        let (name, _, owner) = (values.text()?, values.text()?, values.text()?);
        if name != LOGIND.destination || owner == self.owner {
            return None;
        }
        owner.clone_into(&mut self.owner);
        (!owner.is_empty()).then_some(LogindEvent::Restarted)
    }

    async fn current_owner(&mut self) -> Result<String, LogindError> {
        let mut body = Writer::default();
        body.text(LOGIND.destination);
        let call = Call::new(BUS, "GetNameOwner", "s", body);
        let (reply, _) = self.bus.call(&call).await?;
        let owner = reply.body.first_text().map(str::to_owned);
        owner.ok_or_else(|| self.strange())
    }

    async fn property(&mut self, name: &str) -> Result<Body, LogindError> {
        let mut body = Writer::default();
        body.text(LOGIND.interface);
        body.text(name);
        let call = Call::new(PROPERTIES, "Get", "ss", body);
        let (reply, _) = self.bus.call(&call).await?;
        Ok(reply.body)
    }

    fn strange(&self) -> LogindError {
        let what = "logind's answer is not of the documented type";
        self.bus.unreadable(what).into()
    }
}

/// The value in a variant, if it is of this type.
fn variant<'a>(body: &'a Body, signature: &str) -> Option<crate::dbus::wire::Reader<'a>> {
    let mut reader = body.of("v")?;
    (reader.signature()? == signature).then_some(reader)
}

#[cfg(test)]
mod tests;
