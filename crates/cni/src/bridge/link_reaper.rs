//! Removes interfaces in the background, many at a time.
//!
//! To delete an interface the kernel waits for an RCU grace period, some 15 ms, under the lock for
//! all interface changes (RTNL). For a group of interfaces it waits once. So pods that are removed
//! at the same time share the wait, and no call waits for it.

use std::{net::IpAddr, sync::Arc, thread, time::Duration};

use parking_lot::{Condvar, Mutex};
use rubelet_host::netlink::{Changes, RouteSocket};

use super::address_allocator::AddressAllocator;

/// Longest wait for pending removals.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(10);

/// An interface to remove, with its addresses.
#[derive(Debug)]
pub(super) struct PendingDelete {
    pub(super) interface: String,
    pub(super) addresses: Vec<IpAddr>,
}

/// Removes interfaces in the background.
#[derive(Debug)]
pub(super) struct LinkReaper {
    group: u32,
    allocator: Arc<Mutex<AddressAllocator>>,
    queue: Mutex<Queue>,
    empty: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<PendingDelete>,
    busy: bool,
}

impl LinkReaper {
    pub(super) fn new(group: u32, allocator: Arc<Mutex<AddressAllocator>>) -> Self {
        Self {
            group,
            allocator,
            queue: Mutex::default(),
            empty: Condvar::new(),
        }
    }

    /// Removes an interface of the group, then frees its addresses.
    pub(super) fn add(self: &Arc<Self>, gone: PendingDelete) {
        let mut queue = self.queue.lock();
        queue.waiting.push(gone);
        if queue.busy {
            return;
        }
        queue.busy = true;
        drop(queue);
        let this = Arc::clone(self);
        let started = thread::Builder::new()
            .name("interfaces".to_owned())
            .stack_size(128 * 1024)
            .spawn(move || this.work());
        // The caller does the work itself: with `busy` set, no other thread would.
        if started.is_err() {
            self.work();
        }
    }

    /// Waits until no removal is pending.
    pub(super) fn wait(&self) {
        let mut queue = self.queue.lock();
        let pending = |queue: &mut Queue| queue.busy || !queue.waiting.is_empty();
        let _ = self
            .empty
            .wait_while_for(&mut queue, pending, REMOVAL_TIMEOUT);
    }

    fn work(&self) {
        loop {
            let mut queue = self.queue.lock();
            let gone = std::mem::take(&mut queue.waiting);
            // Under the lock that `add` takes: an interface that comes later finds `busy` cleared
            // and starts a thread.
            if gone.is_empty() {
                queue.busy = false;
                self.empty.notify_all();
                return;
            }
            drop(queue);
            remove(self.group, &gone);
            // Only now: no pod may get an address that an interface still has.
            let mut allocator = self.allocator.lock();
            for gone in &gone {
                allocator.free(&gone.addresses);
            }
        }
    }
}

/// A failed removal is repeated by the next reconciliation.
fn remove(group: u32, gone: &[PendingDelete]) {
    let Ok(mut socket) = RouteSocket::open() else {
        return;
    };
    let mut changes = Changes::default();
    changes.delete_group(group);
    let what = || "remove interfaces".to_owned();
    match socket.apply(changes, what) {
        Err(error) if !error.is_missing() => {
            // One by one, so that an interface which the kernel refuses to delete does not keep the
            // others.
            for PendingDelete { interface, .. } in gone {
                let mut changes = Changes::default();
                changes.delete_link(interface);
                let _ = socket.apply(changes, what);
            }
        }
        _ => {}
    }
}
