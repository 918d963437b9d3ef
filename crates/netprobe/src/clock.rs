//! The clocks: one that only moves forward, for round trip times, and the one of the kernel's time
//! stamps.

use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};

/// The time since the start of a session.
#[derive(Debug, Clone, Copy)]
pub struct SessionClock {
    origin: Duration,
}

impl SessionClock {
    /// A clock that starts now.
    #[must_use]
    pub fn start() -> Self {
        Self {
            origin: read(ClockId::Monotonic),
        }
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Duration {
        read(ClockId::Monotonic).saturating_sub(self.origin)
    }

    /// The time at which the kernel received a datagram, from its time stamp; the present time
    /// without one.
    ///
    /// A stamp is of the wall clock, which may be set at any time. So only its distance from the
    /// present is used: a change of the clock can falsify nothing but the moment between the arrival
    /// and this call.
    #[must_use]
    pub fn received(&self, stamp: Option<Duration>) -> Duration {
        let now = self.now();
        let late = stamp.map(|stamp| unix_time().saturating_sub(stamp));
        now.saturating_sub(late.unwrap_or_default())
    }
}

/// The wall time since the epoch.
#[must_use]
pub(crate) fn unix_time() -> Duration {
    read(ClockId::Realtime)
}

fn read(clock: ClockId) -> Duration {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(clock);
    Duration::new(
        u64::try_from(tv_sec).unwrap_or_default(),
        u32::try_from(tv_nsec).unwrap_or_default(),
    )
}

/// A random number, from the generator that seeds hash maps.
#[must_use]
pub fn random() -> u64 {
    use std::hash::{BuildHasher as _, Hasher as _, RandomState};
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_arrived_before_it_is_read() {
        let clock = SessionClock::start();
        let before = clock.now();
        assert!(clock.received(None) >= before);
        assert!(clock.received(Some(unix_time())) <= clock.now());
        let long_ago = unix_time() - Duration::from_secs(1);
        assert_eq!(clock.received(Some(long_ago)), Duration::ZERO);
        let future = unix_time() + Duration::from_secs(3600);
        assert!(clock.received(Some(future)) >= before);
        assert_ne!(random(), random());
    }
}
