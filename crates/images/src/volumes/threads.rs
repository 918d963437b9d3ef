//! Threads for copies of volumes: an image decides how long one takes, so that no thread that
//! anybody else waits for may do it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use tokio::sync::{Semaphore, oneshot};

/// Copies at a time: a disk is no faster with more of them.
const AT_A_TIME: usize = 2;

/// The threads of a store.
#[derive(Debug, Clone)]
pub(crate) struct CopyThreads(Arc<Semaphore>);

impl Default for CopyThreads {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_A_TIME)))
    }
}

/// Tells a copy that nobody waits for it any more.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cancelled(Arc<AtomicBool>);

impl Cancelled {
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Sets it when the future that waits is dropped.
struct CancelOnDrop(Cancelled);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

impl CopyThreads {
    /// Runs a copy as soon as there is a thread for it; `Err` if none can be started. When the
    /// caller goes away, a copy that waits does not begin, and one that runs is told.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        copy: impl FnOnce(&Cancelled) -> T + Send + 'static,
    ) -> std::io::Result<T> {
        // Never closed.
        let place = Arc::clone(&self.0).acquire_owned().await;
        let place = place.map_err(std::io::Error::other)?;
        let cancelled = Cancelled::default();
        let cancel = CancelOnDrop(cancelled.clone());
        let (sender, done) = oneshot::channel();
        thread::Builder::new()
            .name("volume-copy".to_owned())
            .spawn(move || {
                let copied = copy(&cancelled);
                // Whoever takes the result may begin the next copy.
                drop(place);
                // Nobody waits for what was cancelled.
                let _ = sender.send(copied);
            })?;
        let copied = done.await;
        drop(cancel);
        copied.map_err(|_| std::io::Error::other("the copy panicked"))
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    #[tokio::test]
    async fn no_more_than_two_run_and_who_goes_away_ends_his_copy() {
        let threads = CopyThreads::default();
        let (sender, mut ended) = unbounded_channel();
        let (begun, mut begins) = unbounded_channel();
        let spawn = |number: usize| {
            let (threads, sender, begun) = (threads.clone(), sender.clone(), begun.clone());
            tokio::spawn(async move {
                let copy = move |cancelled: &Cancelled| {
                    begun.send(number).unwrap();
                    while !cancelled.is_set() {
                        thread::yield_now();
                    }
                    sender.send(number).unwrap();
                };
                threads.run(copy).await
            })
        };
        let first = spawn(1);
        assert_eq!(begins.recv().await, Some(1));
        let second = spawn(2);
        assert_eq!(begins.recv().await, Some(2));
        // It waits, and never begins.
        let third = spawn(3);
        tokio::task::yield_now().await;
        third.abort();
        let fourth = spawn(4);
        first.abort();
        assert_eq!(begins.recv().await, Some(4));
        assert_eq!(ended.recv().await, Some(1));
        second.abort();
        fourth.abort();
        let mut rest = [ended.recv().await, ended.recv().await];
        rest.sort_unstable();
        assert_eq!(rest, [Some(2), Some(4)]);
        assert!(begins.try_recv().is_err());
    }

    #[tokio::test]
    async fn a_copy_that_panics_is_an_error_and_frees_its_place() {
        let threads = CopyThreads::default();
        for _ in 0..3 {
            let copy = |_: &Cancelled| panic!("it broke");
            assert!(threads.run(copy).await.is_err());
        }
        assert_eq!(threads.run(|_| 7).await.unwrap(), 7);
    }
}
