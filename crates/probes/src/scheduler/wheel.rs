//! A hierarchical timer wheel. Time is a number of ticks, passed by the caller.
//!
//! Seven wheels of 64 slots stand in each other. A timer hangs in the wheel of the highest digit
//! (to base 64) in which its tick differs from now, and comes down a wheel when that digit is
//! reached. Setting, moving and cancelling take the same short time however many timers there are.

/// Binary digits of a slot's number.
const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
const LEVELS: usize = 7;
/// The latest possible tick.
const END: u64 = (1 << (BITS as usize * LEVELS)) - 1;
/// No timer.
const NONE: u32 = u32::MAX;
/// The level of a timer that is not set.
const UNSET: u8 = u8::MAX;

/// Timers by small keys that the caller assigns; each key is set at most once.
#[derive(Debug)]
pub(super) struct Wheel {
    now: u64,
    /// The first timer of each slot.
    heads: [[u32; SLOTS]; LEVELS],
    /// The slots of each level that have timers, as bits.
    occupied: [u64; LEVELS],
    timers: Vec<Timer>,
}

/// A timer, and its neighbours in its slot.
#[derive(Debug, Clone, Copy)]
struct Timer {
    due: u64,
    level: u8,
    next: u32,
    before: u32,
}

impl Wheel {
    /// A wheel without timers, at tick 0.
    pub(super) fn new() -> Self {
        Self {
            now: 0,
            heads: [[NONE; SLOTS]; LEVELS],
            occupied: [0; LEVELS],
            timers: Vec::new(),
        }
    }

    /// Sets or moves a timer. One that is due by now fires at the next tick.
    pub(super) fn set(&mut self, key: u32, due: u64) {
        self.cancel(key);
        let at = key as usize;
        if at >= self.timers.len() {
            let unset = Timer {
                due: 0,
                level: UNSET,
                next: NONE,
                before: NONE,
            };
            self.timers.resize(at + 1, unset);
        }
        self.timers[at].due = due.max(self.now + 1).min(END);
        self.link(key);
    }

    /// Cancels a timer, if it is set.
    pub(super) fn cancel(&mut self, key: u32) {
        let Some(timer) = self.timers.get(key as usize).copied() else {
            return;
        };
        if timer.level == UNSET {
            return;
        }
        let (level, slot) = (usize::from(timer.level), slot(timer.due, timer.level));
        match timer.before {
            NONE => self.heads[level][slot] = timer.next,
            before => self.timers[before as usize].next = timer.next,
        }
        if timer.next != NONE {
            self.timers[timer.next as usize].before = timer.before;
        }
        if self.heads[level][slot] == NONE {
            self.occupied[level] &= !(1 << slot);
        }
        self.timers[key as usize].level = UNSET;
    }

    /// When to call [`Wheel::advance`] next: not later than the next timer is due, and earlier only
    /// where timers have to come down a wheel.
    pub(super) fn next(&self) -> Option<u64> {
        self.first().map(|(_, _, at)| at)
    }

    /// Advances to a tick and returns the timers that are due by then.
    pub(super) fn advance(&mut self, to: u64, due: &mut Vec<u32>) {
        while let Some((level, slot, at)) = self.first() {
            if at > to {
                break;
            }
            self.now = at;
            let mut key = std::mem::replace(&mut self.heads[level][slot], NONE);
            self.occupied[level] &= !(1 << slot);
            while key != NONE {
                let timer = &mut self.timers[key as usize];
                let next = timer.next;
                timer.level = UNSET;
                if timer.due <= at {
                    due.push(key);
                } else {
                    self.link(key);
                }
                key = next;
            }
        }
        self.now = self.now.max(to).min(END);
    }

    /// The slot that is reached next, and when. All timers of a level share the digits above it
    /// with `now`, so that slots are passed in the order of their numbers.
    fn first(&self) -> Option<(usize, usize, u64)> {
        let level = self.occupied.iter().position(|bits| *bits != 0)?;
        let slot = u64::from(self.occupied[level].trailing_zeros());
        let shift = BITS as usize * level;
        let above = self.now >> (shift + BITS as usize) << (shift + BITS as usize);
        Some((level, slot as usize, above | slot << shift))
    }

    fn link(&mut self, key: u32) {
        let timer = &mut self.timers[key as usize];
        // `| 1`: a timer that is due at this tick differs in no digit, and 0 has no logarithm.
        let differs = (timer.due ^ self.now) | 1;
        timer.level = (differs.ilog2() / BITS) as u8;
        let (level, slot) = (usize::from(timer.level), slot(timer.due, timer.level));
        timer.before = NONE;
        timer.next = std::mem::replace(&mut self.heads[level][slot], key);
        let next = timer.next;
        if next != NONE {
            self.timers[next as usize].before = key;
        }
        self.occupied[level] |= 1 << slot;
    }
}

fn slot(due: u64, level: u8) -> usize {
    (due >> (BITS * u32::from(level))) as usize % SLOTS
}

#[cfg(test)]
mod tests;
