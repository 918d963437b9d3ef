//! Sockets of 32-bit programs, which have a second system call to create them: `socketcall`, whose
//! arguments a seccomp filter can't see.

use anyhow::{Result, ensure};
use rubelet_cri::v1::{self, LinuxContainerSecurityContext as Context};
use rubelet_cri::{RuntimeService, v1::security_profile::ProfileType};
use rubelet_testbed::sockets32::{ALG, INET, VSOCK, script, socket, socketcall};

use crate::subject::{Sandbox, Subject, run};

/// Error numbers.
const EPERM: &str = "1";
const EACCES: &str = "13";
const ENOSYS: &str = "38";

#[test]
fn a_32_bit_program_gets_no_socket_of_a_filtered_family() -> Result<()> {
    let subject = Subject::shared()?;
    if !subject.is_embedded() {
        subject.skip("containerd allows `socketcall`");
        return Ok(());
    }
    let programs = [
        socketcall(ALG),
        socketcall(VSOCK),
        socket(ALG),
        socket(VSOCK),
        socket(INET),
    ];
    let script = script(&programs);
    let asks = |kind: ProfileType| Context {
        seccomp: Some(v1::SecurityProfile {
            profile_type: kind.into(),
            ..Default::default()
        }),
        ..Default::default()
    };
    let status = subject.ask(subject.client().status(v1::StatusRequest::default()))?;
    let handlers = status.runtime_handlers.into_iter().map(|one| one.name);
    // crun creates its filter as runc does, and does not work with every cgroup layout.
    for handler in handlers.filter(|name| ["", "runc"].contains(&&**name)) {
        eprintln!("with the handler {handler:?}");
        let config = subject.sandbox_config(&format!("sockets32{handler}"))?;
        let sandbox = Sandbox {
            id: subject.ask(run(subject.client(), &config, &handler))?,
            subject: &subject,
            config,
        };
        let output = |name: &str, context: Context| {
            let mut config = sandbox.script(name, &script);
            config.linux.get_or_insert_default().security_context = Some(context);
            sandbox.output_of(config)
        };
        let free = output("free", asks(ProfileType::Unconfined))?;
        let free: Vec<&str> = free.lines().collect();
        ensure!(free.len() == programs.len(), "{free:?}");
        if free[4] == "126" {
            subject.skip("the kernel does not execute 32-bit programs");
            return Ok(());
        }
        ensure!(
            free.iter().all(|code| ![EPERM, ENOSYS].contains(code)),
            "{free:?}"
        );
        let usual = output("usual", asks(ProfileType::RuntimeDefault))?;
        let usual: Vec<&str> = usual.lines().collect();
        // With AppArmor the system call is allowed, and the profile refuses the families.
        let by_call = if usual[0] == EACCES { EACCES } else { ENOSYS };
        let refused = [by_call, by_call, EPERM, EPERM];
        assert_eq!(usual[..4], refused, "handler {handler:?}");
        assert_eq!(usual[4], free[4], "handler {handler:?}");
    }
    Ok(())
}
