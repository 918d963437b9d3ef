//! Volumes on a file system that does not answer.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use anyhow::Result;
use rubelet_cri::v1;
use rubelet_testbed::clock;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::lab::Lab;
use crate::subject::WAITING;

/// A FUSE file system whose server reads no requests. Calls hang until it is unmounted.
struct Silent {
    at: PathBuf,
    _server: File,
}

impl Silent {
    fn mount(at: &Path) -> Result<Self> {
        std::fs::create_dir_all(at)?;
        let server = File::options().read(true).write(true).open("/dev/fuse")?;
        let fd = server.as_raw_fd();
        let options = CString::new(format!("fd={fd},rootmode=40000,user_id=0,group_id=0"))?;
        let flags = MountFlags::empty();
        mount("rubelet-test", at, "fuse", flags, Some(options.as_c_str()))?;
        Ok(Self {
            at: at.to_owned(),
            _server: server,
        })
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        // Otherwise the test bed does it.
        let _ = unmount(&self.at, UnmountFlags::DETACH);
    }
}

#[test]
fn a_hanging_volume_fails_its_own_container_only() -> Result<()> {
    let lab = Lab::start()?;
    let dead = lab.subject.runtime.scratch().dir().join("dead");
    let silent = Silent::mount(&dead)?;
    let volume = dead.join("volume").display().to_string();
    let sandbox = lab.subject.sandbox("dead")?;
    let mut config = sandbox.script("main", WAITING);
    config.mounts.push(v1::Mount {
        container_path: "/data".into(),
        host_path: volume.clone(),
        ..Default::default()
    });
    let begun = clock::now();
    let (creation, beside) = lab.subject.ask(async {
        let beside = async {
            let config = lab.subject.sandbox_config("beside")?;
            let client = lab.subject.client();
            let id = crate::subject::run(client, &config, "").await?;
            crate::subject::stop_sandbox(client, &id).await?;
            crate::subject::remove_sandbox(client, &id).await?;
            Ok::<_, anyhow::Error>(begun.elapsed())
        };
        futures_util::join!(sandbox.creation(config.clone()), beside)
    });
    let error = creation
        .expect_err("the volume does not answer")
        .to_string();
    assert!(
        error.contains(&volume) && error.contains("did not respond within"),
        "{error}"
    );
    let took = begun.elapsed();
    assert!(beside? < took, "another pod waited");
    // No other call hangs there.
    let begun = clock::now();
    assert!(sandbox.create(config).is_err());
    assert!(begun.elapsed() < took, "it waited for the volume again");
    // The pod itself continues without it, and can be removed.
    sandbox.output("other", "true")?;
    drop(sandbox);
    lab.assert_works()?;
    drop(silent);
    lab.assert_clean()
}
