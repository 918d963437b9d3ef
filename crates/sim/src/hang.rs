//! Calls that hang until a test lets them continue.

use crate::{
    Sim, Subject,
    fault::{HangRule, Moment, known},
};

/// Calls that hang until this is dropped. See [`Sim::hang`].
#[must_use = "the calls hang only while this is alive"]
pub struct Hang {
    sim: Sim,
    key: u64,
}

impl Hang {
    pub(crate) fn new(sim: Sim, call: &str, subject: Subject, moment: Moment) -> Self {
        known(call);
        let key = sim.with(|state| {
            let key = state.fresh_number();
            state.faults.hangs.push(HangRule {
                key,
                call: call.to_owned(),
                subject,
                moment,
                held: 0,
            });
            key
        });
        Self { sim, key }
    }

    /// Lets the calls continue.
    pub fn release(self) {
        drop(self);
    }

    /// Number of calls that hang here now.
    #[must_use]
    pub fn held(&self) -> usize {
        self.sim.look(|state| state.faults.held(self.key))
    }

    /// Waits until a call hangs here.
    pub async fn reached(&self) {
        self.sim
            .wait(|state| (state.faults.held(self.key) > 0).then_some(()).into())
            .await;
    }
}

impl Drop for Hang {
    fn drop(&mut self) {
        self.sim
            .with(|state| state.faults.hangs.retain(|rule| rule.key != self.key));
    }
}
