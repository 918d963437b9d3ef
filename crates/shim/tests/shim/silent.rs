//! Mounts from file systems that do not answer.

use std::{fs, fs::File, os::fd::AsRawFd as _, path::Path};

use rubelet_oci::{IdMapping, IdMappings, Mount, Namespace, NamespaceKind, Spec};
use rubelet_shim::protocol::{Call, RuntimeChoice, SandboxSetup};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::fixture::{Recipe, Shim, failure};

/// A file system in user space whose server reads nothing. It answers nobody until it is gone.
struct Silent<'a> {
    at: &'a Path,
    _server: File,
}

impl<'a> Silent<'a> {
    fn mount(at: &'a Path) -> Self {
        fs::create_dir_all(at).unwrap();
        let server = File::options().read(true).write(true).open("/dev/fuse");
        let server = server.unwrap();
        let fd = server.as_raw_fd();
        let options = format!("fd={fd},rootmode=40000,user_id=0,group_id=0");
        let options = std::ffi::CString::new(options).unwrap();
        let flags = MountFlags::empty();
        mount("rbt-silent", at, "fuse", flags, Some(options.as_c_str())).unwrap();
        Self {
            at,
            _server: server,
        }
    }
}

impl Drop for Silent<'_> {
    fn drop(&mut self) {
        let _ = unmount(self.at, UnmountFlags::DETACH);
    }
}

#[test]
fn a_mount_that_does_not_answer_holds_up_its_own_container_only() {
    let ids = vec![IdMapping {
        container_id: 0,
        host_id: 1 << 20,
        size: 1 << 16,
    }];
    for user in [false, true] {
        let name = format!("silent-{user}");
        let mut shim = Shim::start(&name, RuntimeChoice::Embedded);
        let setup = SandboxSetup {
            id: "pod".into(),
            user: user.then(|| IdMappings {
                uids: ids.clone(),
                gids: ids.clone(),
            }),
            ..SandboxSetup::default()
        };
        shim.call(Call::MakeSandbox(Box::new(setup))).unwrap();

        let dead = shim.path().join("dead");
        let silent = Silent::mount(&dead);
        let what = shim.prepare("c", "true", Recipe::default());
        let config = what.bundle.join("config.json");
        let mut spec: Spec = serde_json::from_slice(&fs::read(&config).unwrap()).unwrap();
        spec.mounts.push(Mount {
            destination: "/data".into(),
            source: dead.join("volume"),
            kind: "bind".into(),
            options: vec!["rbind".into()],
            ..Mount::default()
        });
        if user {
            spec.linux.uid_mappings = ids.clone();
            spec.linux.gid_mappings = ids.clone();
            let spaces = &mut spec.linux.namespaces;
            // It would be the pod's.
            spaces.retain(|one| one.kind != NamespaceKind::Ipc);
            let own = format!("/proc/{}/ns/user", shim.pid);
            spaces.push(Namespace {
                kind: NamespaceKind::User,
                // The one that the supervisor holds is joined in its place.
                path: Some(own.into()),
            });
        }
        fs::write(&config, serde_json::to_vec(&spec).unwrap()).unwrap();

        let creation = shim
            .client
            .request(Call::Create(Box::new(what)), &[])
            .unwrap();
        // It answers, and other calls are done.
        if shim.container("c").is_none() {
            let reply = shim.client.reply(creation);
            panic!("it did not hang, with a user namespace of its own: {user}: {reply:?}");
        }
        // Whoever has waited enough deletes it, which ends who hangs.
        shim.delete("c");
        let reply = shim.client.reply(creation).map(|(answer, _)| answer);
        assert!(failure(reply).message.contains("deleted"));
        assert!(shim.container("c").is_none());
        drop(silent);
        if !user {
            shim.run("next", "exit 3", Recipe::default());
            assert_eq!(shim.exit("next").exit_code, 3);
        }
    }
}
