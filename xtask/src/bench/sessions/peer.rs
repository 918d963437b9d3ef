//! The same through a kubelet, if there is one to compare with.

use anyhow::Result;
use rubelet_testbed::{Containerd, wait};
use tokio::runtime::Runtime;

use super::{
    BOX, TIMEOUT,
    client::{self, NodeClient},
    manifest, progress, text, through,
};
use crate::bench::kubelet::{self, Kubelet, NODE};

/// Measures and prints, only for comparison.
pub(super) fn measure(runtime: &Runtime) -> Result<()> {
    let Some(program) = kubelet::program() else {
        return Ok(());
    };
    progress("the same with a kubelet and containerd");
    let containerd = Containerd::start()?;
    let (ca, credentials) = client::credentials()?;
    let manifests = [("box.yaml".to_owned(), manifest())];
    let kubelet = Kubelet::start(&program, &containerd, manifests, Some(&ca))?;
    let client = NodeClient::new(kubelet.address, format!("{BOX}-{NODE}"), &credentials)?;
    let hello = || {
        runtime.block_on(async {
            let mut session = client.exec(&["echo", "hello"], false).await?;
            text(&mut session).await
        })
    };
    wait::until("the kubelet's pod runs", TIMEOUT, || {
        Ok(hello().ok().filter(|said| said == "hello\n"))
    })?;
    for (name, value) in runtime.block_on(through(&client))? {
        progress(&format!("kubelet: {name} = {value:.2}"));
    }
    drop(kubelet);
    containerd.remove()
}
