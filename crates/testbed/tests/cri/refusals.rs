//! Invalid requests, and requests for things that the machine lacks: they are refused with a reason
//! and leave nothing behind.

use anyhow::Result;
use rubelet_cri::{RuntimeService, v1};

use crate::subject::{Subject, not_found, refused, run};

#[test]
fn an_invalid_container_is_refused_and_its_name_stays_free() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("refused")?;
    let usual = || sandbox.script("main", "true");
    let linux = |change: fn(&mut v1::LinuxContainerConfig)| {
        let mut config = usual();
        change(config.linux.get_or_insert_default());
        config
    };
    let mount = |host: &str, inside: &str| {
        let mut config = usual();
        config.mounts = vec![v1::Mount {
            host_path: host.into(),
            container_path: inside.into(),
            readonly: true,
            ..Default::default()
        }];
        config
    };
    let mut no_program = usual();
    no_program.command = vec!["/no/such/program".into()];
    let mut no_name = usual();
    no_name.metadata = None;
    let mut no_image = usual();
    no_image.image = None;
    let mut device = usual();
    device.devices = vec![v1::Device {
        container_path: "/dev/x".into(),
        host_path: "/no/such/device".into(),
        permissions: "rwm".into(),
    }];
    let rows = [
        ("no program", no_program),
        ("no name", no_name),
        ("no image", no_image),
        ("no device", device),
        (
            "no directory to mount",
            mount("/proc/no-such-thing", "/data"),
        ),
        (
            "no capability",
            linux(|linux| {
                linux.security_context = Some(v1::LinuxContainerSecurityContext {
                    capabilities: Some(v1::Capability {
                        add_capabilities: vec!["NO_SUCH".into()],
                        ..Default::default()
                    }),
                    ..Default::default()
                });
            }),
        ),
        (
            "no memory",
            linux(|linux| {
                linux.resources = Some(v1::LinuxContainerResources {
                    memory_limit_in_bytes: 4096,
                    ..Default::default()
                });
            }),
        ),
    ];
    for (what, config) in rows {
        let answer = sandbox.start(config);
        match answer {
            Err(error) => assert!(!error.message.is_empty(), "{what}"),
            // Containerd has no reason for some of them; the embedded runtime has.
            Ok(_) => assert!(!subject.is_embedded(), "{what} was taken"),
        }
        // A container that was created but can't start exists until it is removed.
        let listed = subject.ask(subject.client().list_containers(v1::ListContainersRequest {
            filter: Some(v1::ContainerFilter {
                pod_sandbox_id: sandbox.id.clone(),
                ..Default::default()
            }),
        }))?;
        for container in listed.containers {
            subject.ask(crate::subject::remove(subject.client(), &container.id))?;
        }
        let id = sandbox.start(usual())?;
        assert_eq!(sandbox.ended(&id)?.exit_code, 0, "after {what}");
        subject.ask(crate::subject::remove(subject.client(), &id))?;
    }
    Ok(())
}

#[test]
fn a_missing_program_is_reported_and_the_container_exits() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("absent")?;
    let mut config = sandbox.script("main", "");
    config.command = vec!["no-such-program".into()];
    let error = match sandbox.create(config) {
        Err(error) => error,
        Ok(id) => {
            let error = refused(subject.ask(crate::subject::start(subject.client(), &id)));
            let status = sandbox.status(&id)?;
            assert_eq!(status.state(), v1::ContainerState::ContainerExited);
            assert_eq!(
                (status.exit_code, status.reason.as_str()),
                (128, "StartError")
            );
            assert!(
                status.message.contains("no-such-program"),
                "{}",
                status.message
            );
            error
        }
    };
    assert!(error.message.contains("no-such-program"), "{error}");
    Ok(())
}

#[test]
fn empty_requests_are_refused() -> Result<()> {
    let subject = Subject::shared()?;
    let client = subject.client();
    let id = |answer: rubelet_cri::CriResult<()>| {
        let error = refused(answer);
        assert!(!error.is_unimplemented(), "{error}");
    };
    id(subject
        .ask(client.create_container(Default::default()))
        .map(drop));
    id(subject
        .ask(client.start_container(Default::default()))
        .map(drop));
    id(subject
        .ask(client.container_status(Default::default()))
        .map(drop));
    id(subject
        .ask(client.pod_sandbox_status(Default::default()))
        .map(drop));
    id(subject.ask(client.exec_sync(Default::default())).map(drop));
    Ok(())
}

#[test]
fn a_container_of_a_missing_sandbox_is_not_found() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("orphan")?;
    let request = v1::CreateContainerRequest {
        pod_sandbox_id: "8".repeat(64),
        config: Some(sandbox.script("main", "true")),
        sandbox_config: Some(sandbox.config.clone()),
    };
    not_found(subject.ask(subject.client().create_container(request)));
    Ok(())
}

#[test]
fn an_invalid_sandbox_is_refused_and_its_name_stays_free() -> Result<()> {
    let subject = Subject::shared()?;
    if !subject.is_embedded() {
        subject.skip("containerd does not refuse them");
        return Ok(());
    }
    let usual = subject.sandbox_config("impossible")?;
    let with = |change: &dyn Fn(&mut v1::LinuxPodSandboxConfig)| {
        let mut config = usual.clone();
        change(config.linux.get_or_insert_default());
        config
    };
    let below = |parent: &'static str| with(&move |linux| linux.cgroup_parent = parent.into());
    let without_root = with(&|linux| {
        let one = v1::IdMapping {
            host_id: 1000,
            container_id: 1,
            length: 100_000,
        };
        let security = linux.security_context.get_or_insert_default();
        security.namespace_options = Some(v1::NamespaceOption {
            userns_options: Some(v1::UserNamespace {
                mode: v1::NamespaceMode::Pod.into(),
                uids: vec![one],
                gids: vec![one],
            }),
            ..Default::default()
        });
    });
    for (config, why) in [
        (below("/"), "linux.cgroup_parent"),
        (below("/pods/../.."), "linux.cgroup_parent"),
        (without_root, "it must begin at 0"),
    ] {
        let answer = subject.ask(run(subject.client(), &config, ""));
        let error = subject.invalid(answer);
        assert!(error.message.contains(why), "{error}");
    }
    subject.sandbox_of(usual)?;
    Ok(())
}
