//! Removes interfaces in the background, many at a time.
//!
//! The kernel waits for all processors before an interface is gone, some 15 ms, and keeps others from
//! changing interfaces meanwhile. It waits but once for a whole group. So pods that go at the same time
//! share the wait, and none of them waits for it itself.

use std::{
    net::IpAddr,
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread,
    time::Duration,
};

use rubelet_host::netlink::{Changes, RouteSocket};

use super::book::Book;

/// How long to wait for others' removals at most.
const PATIENCE: Duration = Duration::from_secs(10);

/// An interface that goes, with its addresses.
#[derive(Debug)]
pub(super) struct Gone {
    pub(super) interface: String,
    pub(super) addresses: Vec<IpAddr>,
}

/// The interfaces that go.
#[derive(Debug)]
pub(super) struct Burial {
    group: u32,
    book: Arc<Mutex<Book>>,
    queue: Mutex<Queue>,
    empty: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<Gone>,
    busy: bool,
}

impl Burial {
    pub(super) fn new(group: u32, book: Arc<Mutex<Book>>) -> Self {
        Self {
            group,
            book,
            queue: Mutex::default(),
            empty: Condvar::new(),
        }
    }

    /// Removes an interface that is in the group by now, and then frees its addresses.
    pub(super) fn add(self: &Arc<Self>, gone: Gone) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
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
        if started.is_err() {
            self.work();
        }
    }

    /// Waits until all that was to go is gone.
    pub(super) fn wait(&self) {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = self.empty.wait_timeout_while(queue, PATIENCE, |queue| {
            queue.busy || !queue.waiting.is_empty()
        });
    }

    fn work(&self) {
        loop {
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            let gone = std::mem::take(&mut queue.waiting);
            if gone.is_empty() {
                queue.busy = false;
                self.empty.notify_all();
                return;
            }
            drop(queue);
            remove(self.group, &gone);
            let mut book = self.book.lock().unwrap_or_else(PoisonError::into_inner);
            for gone in &gone {
                book.free(&gone.addresses);
            }
        }
    }
}

/// What can't be removed now is found by the next reconciliation.
fn remove(group: u32, gone: &[Gone]) {
    let Ok(mut socket) = RouteSocket::open() else {
        return;
    };
    let mut changes = Changes::default();
    changes.delete_group(group);
    let what = || "remove interfaces".to_owned();
    match socket.apply(changes, what) {
        Err(error) if !error.is_missing() => {
            for Gone { interface, .. } in gone {
                let mut changes = Changes::default();
                changes.delete_link(interface);
                let _ = socket.apply(changes, what);
            }
        }
        _ => {}
    }
}
