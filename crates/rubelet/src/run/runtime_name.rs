//! The runtime's name, stored across restarts: it is part of container IDs in statuses, and a
//! status is shown before the runtime has answered.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use rubelet_base::ErrorChain;
use rubelet_node_state::runtime_state::RuntimeState;
use rubelet_store::{Loaded, Migration, Record, Stored};
use serde::{Deserialize, Serialize};
use tokio::{sync::watch, task::spawn_blocking};
use tracing::warn;

/// The name, and the endpoint of the runtime: another runtime may have another name.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct RuntimeName {
    endpoint: String,
    name: String,
}

impl Stored for RuntimeName {
    const KIND: &'static str = "runtime-name";
    const MIGRATIONS: &'static [Migration] = &[];
}

/// The last known name of the runtime at this endpoint; empty if unknown.
pub(super) async fn load(path: &Path, endpoint: &str) -> Arc<str> {
    let path = path.to_owned();
    let loaded = spawn_blocking(move || Record::<RuntimeName>::at(path).load()).await;
    match loaded {
        Ok(Ok(Loaded::Valid(kept))) if kept.endpoint == endpoint => kept.name.into(),
        // It is queried anyway, and written again.
        _ => "".into(),
    }
}

/// Keeps the record in sync with the runtime, forever.
pub(super) async fn keep(
    mut state: watch::Receiver<RuntimeState>,
    endpoint: Arc<str>,
    path: PathBuf,
) {
    let mut kept: Arc<str> = "".into();
    loop {
        let name = Arc::clone(&state.borrow_and_update().name);
        if name == kept {
            match state.changed().await {
                Ok(()) => continue,
                Err(_) => return,
            }
        }
        kept = name;
        let record = RuntimeName {
            endpoint: endpoint.to_string(),
            name: kept.to_string(),
        };
        let path = path.clone();
        let saved = spawn_blocking(move || Record::at(path).save_synced(&record).map(drop)).await;
        if let Ok(Err(error)) = saved {
            warn!(error = %ErrorChain(&error), "Cannot write the record of the runtime's name");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn the_name_is_known_again_for_the_same_endpoint_only() {
        let directory = tempfile::Builder::new()
            .prefix("rbt-rubelet-")
            .tempdir()
            .unwrap();
        let path = directory.path().join("runtime-name.json");
        assert_eq!(&*load(&path, "embedded").await, "");
        let (say, state) = watch::channel(RuntimeState::default());
        let keeper = tokio::spawn(keep(state, "embedded".into(), path.clone()));
        for name in ["rubelet", "other"] {
            say.send_modify(|state| state.name = name.into());
            let written = async {
                while &*load(&path, "embedded").await != name {
                    tokio::task::yield_now().await;
                }
            };
            timeout(Duration::from_secs(30), written).await.unwrap();
        }
        assert_eq!(&*load(&path, "unix:///run/other.sock").await, "");
        drop(say);
        keeper.await.unwrap();
        std::fs::write(&path, "no record").unwrap();
        assert_eq!(&*load(&path, "embedded").await, "");
    }
}
