//! Returns memory to the kernel after a burst of work.

use std::time::Duration;

use futures_util::future::select_all;
use rubelet_host::{alloc, file_pages};
use tokio::{sync::watch, task::spawn_blocking, time::timeout};

/// Time without work before memory is returned.
const QUIET: Duration = Duration::from_secs(5);

/// Returns memory once after each burst of work, until one of the channels closes. Each changes when
/// some work has ended. Does nothing while there is none.
pub(super) async fn trim_memory(work: Vec<watch::Receiver<u64>>) {
    after_bursts(work, async || {
        let released = spawn_blocking(|| (alloc::trim(), file_pages::release())).await;
        tracing::debug!(?released, "Returned memory to the kernel");
    })
    .await;
}

async fn after_bursts(mut work: Vec<watch::Receiver<u64>>, mut quiet: impl AsyncFnMut()) {
    loop {
        while let Ok(changed) = timeout(QUIET, any_changed(&mut work)).await {
            if changed.is_err() {
                return;
            }
        }
        quiet().await;
        if any_changed(&mut work).await.is_err() {
            return;
        }
    }
}

/// Waits for the first change of any of them.
async fn any_changed(channels: &mut [watch::Receiver<u64>]) -> Result<(), watch::error::RecvError> {
    let changes = channels
        .iter_mut()
        .map(|channel| Box::pin(channel.changed()));
    select_all(changes).await.0
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, future::poll_fn, pin::pin, task::Poll};

    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_burst_of_any_work_is_followed_by_one_return() {
        let senders: [watch::Sender<u64>; 3] = Default::default();
        let work = senders.iter().map(watch::Sender::subscribe).collect();
        let returned = Cell::new(0);
        let mut task = pin!(after_bursts(work, async || returned.set(returned.get() + 1)));
        let mut after = async |seconds| {
            advance(Duration::from_secs(seconds)).await;
            let ended =
                poll_fn(|context| Poll::Ready(task.as_mut().poll(context).is_ready())).await;
            (returned.get(), ended)
        };
        assert_eq!(after(0).await, (0, false));
        assert_eq!(after(6).await, (1, false), "the start is a burst");
        assert_eq!(after(3600).await, (1, false), "nothing at idle");
        for (sender, count) in senders.iter().zip(2..) {
            for _ in 0..4 {
                sender.send_modify(|count| *count += 1);
                assert_eq!(after(3).await, (count - 1, false), "the burst goes on");
            }
            assert_eq!(after(6).await, (count, false));
        }
        drop(senders);
        assert_eq!(after(0).await, (4, true));
    }
}
