//! Isolation of a container: namespaces, capabilities, system calls, masked paths.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use rubelet_cri::v1::security_profile::ProfileType;
use rubelet_cri::v1::{self, LinuxContainerSecurityContext as Context, NamespaceMode};

use crate::subject::{Sandbox, Subject, WAITING, exec};

fn with(mut config: v1::ContainerConfig, context: Context) -> v1::ContainerConfig {
    config.linux.get_or_insert_default().security_context = Some(context);
    config
}

fn sandbox_with<'a>(
    subject: &'a Subject,
    name: &str,
    context: v1::LinuxSandboxSecurityContext,
) -> Result<Sandbox<'a>> {
    let mut config = subject.sandbox_config(name)?;
    let options = context.namespace_options.clone().unwrap_or_default();
    if options.network == NamespaceMode::Node as i32 {
        // The pod can't choose the host's name.
        config.hostname = String::new();
    }
    config.linux.get_or_insert_default().security_context = Some(context);
    subject.sandbox_of(config)
}

/// A namespace of a process, by kind.
fn namespace(pid: &str, kind: &str) -> Result<PathBuf> {
    let path = format!("/proc/{pid}/ns/{kind}");
    std::fs::read_link(&path).with_context(|| format!("cannot read {path}"))
}

#[test]
fn network_ipc_and_uts_namespaces_are_those_of_the_pod() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("spaces")?;
    let pids = ["one", "two"].map(|name| -> Result<String> {
        Ok(subject.truth.pid(&sandbox.waiting(name)?)?.to_string())
    });
    let [one, two] = pids;
    let (one, two) = (one?, two?);
    for kind in ["net", "ipc", "uts"] {
        assert_eq!(namespace(&one, kind)?, namespace(&two, kind)?, "{kind}");
        assert_ne!(namespace(&one, kind)?, namespace("self", kind)?, "{kind}");
    }
    for kind in ["mnt", "pid"] {
        assert_ne!(namespace(&one, kind)?, namespace(&two, kind)?, "{kind}");
        assert_ne!(namespace(&one, kind)?, namespace("self", kind)?, "{kind}");
    }
    Ok(())
}

#[test]
fn a_pod_can_share_its_pid_namespace() -> Result<()> {
    let subject = Subject::shared()?;
    let options = v1::NamespaceOption {
        pid: NamespaceMode::Pod.into(),
        ..Default::default()
    };
    let sandbox = sandbox_with(
        &subject,
        "together",
        v1::LinuxSandboxSecurityContext {
            namespace_options: Some(options.clone()),
            ..Default::default()
        },
    )?;
    let shared = |name: &str, script: &str| {
        with(
            sandbox.script(name, script),
            Context {
                namespace_options: Some(options.clone()),
                ..Context::default()
            },
        )
    };
    let first = sandbox.start(shared("first", "exec sleep 4242"))?;
    let seen = sandbox.output_of(shared("second", "ps | grep -c '[s]leep 4242'; echo $$"))?;
    let (count, own) = seen.trim().split_once('\n').unwrap();
    assert_eq!(count, "1");
    assert_ne!(own, "1", "process 1 is the pod's own");
    // Orphans are reaped by the pod's process 1.
    let orphan = [
        "sh",
        "-c",
        "(sleep 0.2 &) ; sleep 1; ps -o stat | grep -c '^Z' || true",
    ];
    let done = subject.ask(exec(subject.client(), &first, &orphan, 20))?;
    if subject.is_embedded() {
        // The test bed's pause image for containerd is a shell, which reaps only when it wakes up.
        assert_eq!(String::from_utf8_lossy(&done.stdout).trim(), "0");
    }
    Ok(())
}

#[test]
fn a_debug_container_shares_its_targets_pid_namespace() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("target")?;
    let target = sandbox.start(sandbox.script("main", "exec sleep 4343"))?;
    let options = v1::NamespaceOption {
        pid: NamespaceMode::Target.into(),
        target_id: target,
        ..Default::default()
    };
    let debug = with(
        sandbox.script(
            "debug",
            "cat /proc/1/cmdline | tr '\\0' ' '; echo; echo $$ > /tmp/p; [ $$ != 1 ] && echo guest",
        ),
        Context {
            namespace_options: Some(options),
            ..Context::default()
        },
    );
    assert_eq!(sandbox.output_of(debug)?, "sleep 4343 \nguest\n");
    Ok(())
}

#[test]
fn the_hosts_namespaces_are_shared_on_request() -> Result<()> {
    let subject = Subject::shared()?;
    let node = NamespaceMode::Node.into();
    let options = v1::NamespaceOption {
        network: node,
        pid: node,
        ipc: node,
        ..Default::default()
    };
    let sandbox = sandbox_with(
        &subject,
        "host",
        v1::LinuxSandboxSecurityContext {
            namespace_options: Some(options.clone()),
            ..Default::default()
        },
    )?;
    let config = with(
        sandbox.script("main", WAITING),
        Context {
            namespace_options: Some(options),
            ..Context::default()
        },
    );
    let pid = subject.truth.pid(&sandbox.start(config)?)?.to_string();
    for kind in ["net", "pid", "ipc", "uts"] {
        assert_eq!(namespace(&pid, kind)?, namespace("self", kind)?, "{kind}");
    }
    assert_ne!(namespace(&pid, "mnt")?, namespace("self", "mnt")?);
    let status = sandbox.own_status()?;
    let shown = status
        .linux
        .and_then(|linux| linux.namespaces)
        .unwrap_or_default();
    let shown = shown.options.unwrap_or_default();
    assert_eq!(shown.network(), NamespaceMode::Node);
    assert_eq!(shown.pid(), NamespaceMode::Node);
    Ok(())
}

#[test]
fn capabilities_are_the_defaults_plus_added_minus_dropped() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("caps")?;
    let script = "for c in Inh Prm Eff Bnd Amb; do grep ^Cap$c /proc/self/status | cut -f2; done";
    let caps = |name: &str, add: &[&str], drop: &[&str]| -> Result<Vec<u64>> {
        let text = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        let config = with(
            sandbox.script(name, script),
            Context {
                capabilities: Some(v1::Capability {
                    add_capabilities: text(add),
                    drop_capabilities: text(drop),
                    ..Default::default()
                }),
                ..Context::default()
            },
        );
        let output = sandbox.output_of(config)?;
        Ok(output
            .lines()
            .map(|line| u64::from_str_radix(line, 16).unwrap())
            .collect())
    };
    let usual = 0xa804_25fb;
    let (bind, time, mknod) = (1 << 10, 1 << 25, 1 << 27);
    assert_eq!(caps("usual", &[], &[])?[1..4], [usual; 3]);
    assert_eq!(caps("none", &[], &["ALL"])?, [0; 5]);
    assert_eq!(
        caps("one", &["NET_BIND_SERVICE"], &["ALL"])?[1..4],
        [bind; 3]
    );
    assert_eq!(
        caps("changed", &["SYS_TIME"], &["MKNOD"])?[1..4],
        [(usual | time) & !mknod; 3]
    );
    assert_eq!(caps("inherited", &[], &[])?[0], 0, "nothing is inheritable");
    Ok(())
}

#[test]
fn no_new_privileges_can_be_set() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("nnp")?;
    let script = "grep ^NoNewPrivs /proc/self/status | cut -f2";
    for (name, no_new_privs) in [("open", false), ("shut", true)] {
        let config = with(
            sandbox.script(name, script),
            Context {
                no_new_privs,
                ..Context::default()
            },
        );
        let wanted = format!("{}\n", u8::from(no_new_privs));
        assert_eq!(sandbox.output_of(config)?, wanted);
    }
    Ok(())
}

#[test]
fn system_calls_are_filtered_as_configured() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("seccomp")?;
    // A new user namespace needs no capability; the default profile denies it.
    let script = "grep ^Seccomp: /proc/self/status | cut -f2; unshare -U true 2>/dev/null && echo may; \
                  mkdir /tmp/d 2>/dev/null && echo made; true";
    let profile = |kind: ProfileType, path: &str| v1::SecurityProfile {
        profile_type: kind.into(),
        localhost_ref: path.into(),
    };
    let run = |name: &str, seccomp: Option<v1::SecurityProfile>| {
        sandbox.output_of(with(
            sandbox.script(name, script),
            Context {
                seccomp,
                ..Context::default()
            },
        ))
    };
    assert_eq!(
        run("usual", Some(profile(ProfileType::RuntimeDefault, "")))?,
        "2\nmade\n"
    );
    assert!(run("open", Some(profile(ProfileType::Unconfined, "")))?.starts_with("0\n"));
    let file = subject.runtime.scratch().dir().join("no-mkdir.json");
    let text = r#"{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["mkdir","mkdirat"],"action":"SCMP_ACT_ERRNO","errnoRet":1}]}"#;
    std::fs::write(&file, text)?;
    let local = profile(ProfileType::Localhost, &file.display().to_string());
    let output = run("local", Some(local))?;
    assert!(
        output.starts_with("2\n") && !output.contains("made"),
        "{output}"
    );
    let missing = profile(ProfileType::Localhost, "/no/such/profile.json");
    let config = with(
        sandbox.script("missing", script),
        Context {
            seccomp: Some(missing),
            ..Context::default()
        },
    );
    let error = crate::subject::refused(sandbox.start(config));
    assert!(error.message.contains("/no/such/profile.json"), "{error}");
    Ok(())
}

#[test]
fn paths_of_the_host_in_proc_and_sys_are_masked() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("masked")?;
    let script = "ls /proc/acpi /proc/scsi /sys/firmware 2>/dev/null | grep -v :$ | grep -c .; \
                  wc -c < /proc/cpuinfo; (echo x > /proc/sys/vm/overcommit_memory) 2>&1 | grep -c 'Read-only'; \
                  touch /sys/x 2>&1 | grep -c 'Read-only'; mount -t tmpfs none /tmp 2>&1 | grep -c .";
    let paths = |paths: &[&str]| paths.iter().map(ToString::to_string).collect();
    let config = with(
        sandbox.script("main", script),
        Context {
            masked_paths: paths(&["/proc/acpi", "/proc/cpuinfo", "/proc/scsi", "/sys/firmware"]),
            readonly_paths: paths(&["/proc/sys", "/proc/bus"]),
            ..Context::default()
        },
    );
    let id = sandbox.start(config)?;
    sandbox.ended(&id)?;
    let texts: Vec<_> = sandbox
        .log("main")?
        .into_iter()
        .map(|line| line.text)
        .collect();
    assert_eq!(texts, ["0", "0", "1", "1", "1"]);
    Ok(())
}

#[test]
fn a_privileged_container_has_the_runtimes_rights() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = sandbox_with(
        &subject,
        "privileged",
        v1::LinuxSandboxSecurityContext {
            privileged: true,
            ..Default::default()
        },
    )?;
    let script = "grep ^CapEff /proc/self/status | cut -f2; mount -t tmpfs none /mnt 2>/dev/null || \
                  { mkdir /mnt && mount -t tmpfs none /mnt; } && echo mounted; \
                  touch /sys/x 2>&1 | grep -c 'Read-only'; ls -d /dev/mem /dev/loop-control /dev/kmsg 2>/dev/null | wc -l";
    let config = with(
        sandbox.script("main", script),
        Context {
            privileged: true,
            ..Context::default()
        },
    );
    let output = sandbox.output_of(config.clone())?;
    let lines: Vec<&str> = output.lines().collect();
    let own = std::fs::read_to_string("/proc/self/status")?;
    let own = own.lines().find_map(|line| line.strip_prefix("CapEff:\t"));
    assert_eq!(Some(lines[0]), own);
    assert_eq!(lines[1..3], ["mounted", "0"]);

    let usual = subject.sandbox("usual")?;
    subject.invalid(usual.create(config));
    Ok(())
}

#[test]
fn a_pod_in_a_user_namespace_is_root_inside_only() -> Result<()> {
    let subject = Subject::shared()?;
    if !subject.is_embedded() {
        subject.skip("this runc is too old for the mounts of such pods");
        return Ok(());
    }
    let mapping = v1::IdMapping {
        host_id: 1_000_000,
        container_id: 0,
        length: 65536,
    };
    let options = v1::NamespaceOption {
        userns_options: Some(v1::UserNamespace {
            mode: NamespaceMode::Pod.into(),
            uids: vec![mapping],
            gids: vec![mapping],
        }),
        ..Default::default()
    };
    let sandbox = sandbox_with(
        &subject,
        "userns",
        v1::LinuxSandboxSecurityContext {
            namespace_options: Some(options.clone()),
            ..Default::default()
        },
    )?;
    let data = subject.runtime.scratch().subdir("host/userns")?;
    std::fs::write(data.join("note"), "readable\n")?;
    let script = "id -u; cat /data/note; echo mine > /data/made; ls -ln /etc/passwd | awk '{print $3}'; \
                  echo ready; sleep 1000";
    let mut config = with(
        sandbox.script("main", script),
        Context {
            namespace_options: Some(options),
            ..Context::default()
        },
    );
    config.mounts = vec![v1::Mount {
        host_path: data.display().to_string(),
        container_path: "/data".into(),
        uid_mappings: vec![mapping],
        gid_mappings: vec![mapping],
        ..Default::default()
    }];
    let id = sandbox.start(config)?;
    sandbox.wait_log("main", "ready")?;
    let texts: Vec<_> = sandbox
        .log("main")?
        .into_iter()
        .map(|line| line.text)
        .collect();
    assert_eq!(texts, ["0", "readable", "0", "ready"]);
    let pid = subject.truth.pid(&id)?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    assert!(status.contains("\nUid:\t1000000\t"), "{status}");
    use std::os::unix::fs::MetadataExt;
    assert_eq!(
        std::fs::metadata(data.join("made"))?.uid(),
        0,
        "the mount maps ids back"
    );
    Ok(())
}

#[test]
fn sysctls_of_the_pods_namespaces_are_set() -> Result<()> {
    let subject = Subject::shared()?;
    let mut config = subject.sandbox_config("sysctl")?;
    config.linux.get_or_insert_default().sysctls = [
        ("net.ipv4.ip_unprivileged_port_start", "80"),
        ("kernel.shm_rmid_forced", "1"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    let sandbox = subject.sandbox_of(config)?;
    let script =
        "cat /proc/sys/net/ipv4/ip_unprivileged_port_start /proc/sys/kernel/shm_rmid_forced";
    assert_eq!(sandbox.output("main", script)?, "80\n1\n");

    let mut config = subject.sandbox_config("sysctl")?;
    config.linux.get_or_insert_default().sysctls =
        [("kernel.panic".to_owned(), "1".to_owned())].into();
    let refused = subject.sandbox_of(config);
    if subject.is_embedded() {
        assert!(refused.is_err(), "a setting of the whole host is refused");
    }
    Ok(())
}
