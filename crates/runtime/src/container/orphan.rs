//! Containers whose shim has exited.

use std::sync::Arc;

use rubelet_runtime_plan::record::ExitRecord;
use rubelet_shim::exit_record;

use super::{Container, record_exit};
use crate::{clock, engine::Engine, error::Result};

/// The exit message of a container that was killed because its shim exited.
const MESSAGE: &str = "the pod's shim exited unexpectedly, and the container was killed";

/// Kills the remaining processes of a container without a shim, and records its exit.
pub(crate) async fn kill_orphan(engine: &Arc<Engine>, container: &Arc<Container>) -> Result<()> {
    if container.has_exited() {
        return Ok(());
    }
    let cgroup = container.cgroup()?;
    let cleared = engine.clear_cgroup(&cgroup).await;
    let bundle = engine
        .layout
        .sandbox(&container.sandbox.id)
        .bundle(&container.id);
    // The shim may have recorded the exit before it exited itself.
    let seen = engine
        .blocking(move || Ok(exit_record::read(&bundle).ok().flatten()))
        .await?;
    match seen {
        Some(exit) => record_exit::on_exit(engine, container, &exit),
        None => {
            let exit = ExitRecord::unknown(clock::now_ns(), MESSAGE);
            record_exit::record_exit(engine, container, exit);
        }
    }
    cleared
}
