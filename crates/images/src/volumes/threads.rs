//! Threads for copies of volumes: an image decides how long a copy takes, so it must not run on a
//! thread for which other operations wait.

use std::{collections::HashMap, sync::Arc, thread};

use parking_lot::Mutex;
use tokio::{
    sync::{Semaphore, oneshot},
    time::Instant,
};

use super::progress::{CopyProgress, VolumeCopy};

/// Maximum concurrent copies: a disk is no faster with more of them.
const AT_A_TIME: usize = 2;

/// The threads of a store. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct CopyThreads(Arc<CopyQueue>);

#[derive(Debug)]
struct CopyQueue {
    places: Arc<Semaphore>,
    /// Copies that are awaited, by the container's ID. Locked briefly only.
    copies: Mutex<HashMap<String, (Instant, Arc<CopyProgress>)>>,
}

impl Default for CopyThreads {
    fn default() -> Self {
        Self(Arc::new(CopyQueue {
            places: Arc::new(Semaphore::new(AT_A_TIME)),
            copies: Mutex::default(),
        }))
    }
}

/// A copy with a waiter; cancelled when this is dropped.
struct AwaitedCopy<'a> {
    shared: &'a CopyQueue,
    container_id: &'a str,
    progress: Arc<CopyProgress>,
}

impl<'a> AwaitedCopy<'a> {
    fn new(shared: &'a CopyQueue, container_id: &'a str) -> Self {
        let progress = Arc::<CopyProgress>::default();
        let entry = (Instant::now(), Arc::clone(&progress));
        shared.copies.lock().insert(container_id.to_owned(), entry);
        Self {
            shared,
            container_id,
            progress,
        }
    }
}

impl Drop for AwaitedCopy<'_> {
    fn drop(&mut self) {
        self.shared.copies.lock().remove(self.container_id);
        self.progress.cancel();
    }
}

impl CopyThreads {
    /// Runs the copy for a container as soon as there is a thread for it; `Err` if none can be
    /// started. When the caller goes away, a waiting copy does not start, and a running one is
    /// cancelled.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        container_id: &str,
        copy: impl FnOnce(&CopyProgress) -> T + Send + 'static,
    ) -> std::io::Result<T> {
        let awaited = AwaitedCopy::new(&self.0, container_id);
        // Never closed.
        let place = Arc::clone(&self.0.places).acquire_owned().await;
        let place = place.map_err(std::io::Error::other)?;
        let progress = Arc::clone(&awaited.progress);
        progress.begin();
        let (sender, done) = oneshot::channel();
        thread::Builder::new()
            .name("volume-copy".to_owned())
            .spawn(move || {
                let copied = copy(&progress);
                // The receiver of the result may start the next copy.
                drop(place);
                // The receiver is gone if the copy was cancelled.
                let _ = sender.send(copied);
            })?;
        let copied = done.await;
        drop(awaited);
        copied.map_err(|_| std::io::Error::other("the copy panicked"))
    }

    /// The progress of the copy for a container; `None` if no copy runs.
    pub(crate) fn progress(&self, container_id: &str) -> Option<VolumeCopy> {
        let copies = self.0.copies.lock();
        let (since, progress) = copies.get(container_id)?;
        Some(progress.after(since.elapsed()))
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
                let copy = move |progress: &CopyProgress| {
                    begun.send(number).unwrap();
                    while !progress.is_cancelled() {
                        thread::yield_now();
                    }
                    sender.send(number).unwrap();
                };
                threads.run(&number.to_string(), copy).await
            })
        };
        let first = spawn(1);
        assert_eq!(begins.recv().await, Some(1));
        let second = spawn(2);
        assert_eq!(begins.recv().await, Some(2));
        // It waits, and never begins.
        let third = spawn(3);
        tokio::task::yield_now().await;
        assert!(threads.progress("1").unwrap().begun);
        assert!(!threads.progress("3").unwrap().begun);
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
        assert_eq!(threads.progress("1"), None);
    }

    /// Sixteen pods, as in one blocking pool for all: whoever needs a thread of that would wait.
    #[test]
    fn however_many_copies_there_are_they_take_no_thread_of_the_blocking_pool() {
        const COPIES: usize = 16;
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.max_blocking_threads(1).build().unwrap();
        runtime.block_on(async {
            let threads = CopyThreads::default();
            let (begun, mut begins) = unbounded_channel();
            let copies: Vec<_> = (0..COPIES)
                .map(|number| {
                    let (threads, begun) = (threads.clone(), begun.clone());
                    tokio::spawn(async move {
                        let copy = move |progress: &CopyProgress| {
                            begun.send(()).unwrap();
                            while !progress.is_cancelled() {
                                thread::yield_now();
                            }
                        };
                        threads.run(&number.to_string(), copy).await
                    })
                })
                .collect();
            for _ in 0..AT_A_TIME {
                begins.recv().await.unwrap();
            }
            // The work of sixteen others, on the one thread of the pool, while no copy ends.
            for number in 0..COPIES {
                let other = tokio::task::spawn_blocking(move || number);
                assert_eq!(other.await.unwrap(), number);
            }
            assert!(begins.try_recv().is_err(), "no other copy has begun");
            assert!(copies.iter().all(|copy| !copy.is_finished()));
            copies.iter().for_each(tokio::task::JoinHandle::abort);
        });
    }

    #[tokio::test]
    async fn a_copy_that_panics_is_an_error_and_frees_its_place() {
        let threads = CopyThreads::default();
        for _ in 0..3 {
            let copy = |_: &CopyProgress| panic!("it broke");
            assert!(threads.run("a", copy).await.is_err());
        }
        assert_eq!(threads.run("a", |_| 7).await.unwrap(), 7);
    }
}
