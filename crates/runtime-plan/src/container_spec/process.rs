//! The first process: its command line, environment, user and privileges.

use rubelet_cri::v1;
use rubelet_oci::{Process, User, image::ImageConfig};

use super::SpecInput;
use crate::{Refusal, capability, profile, resources};

/// The default of `PATH`.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

pub(super) fn process(
    input: &SpecInput<'_>,
    security: &v1::LinuxContainerSecurityContext,
) -> Result<Process, Refusal> {
    let container = input.container;
    let resources = container
        .linux
        .as_ref()
        .and_then(|linux| linux.resources.as_ref());
    let cwd = [&container.working_dir, &input.image.working_dir]
        .into_iter()
        .find(|directory| !directory.is_empty())
        .map_or("/", String::as_str);
    if !cwd.starts_with('/') {
        return Err(Refusal::new(
            "working_dir",
            format!("{cwd:?} is not an absolute path"),
        ));
    }
    Ok(Process {
        terminal: container.tty,
        console_size: None,
        user: User {
            uid: input.user.uid,
            gid: input.user.gid,
            umask: None,
            additional_gids: input.user.additional_gids.clone(),
        },
        args: args(container, input.image)?,
        env: env(input)?,
        cwd: cwd.into(),
        capabilities: Some(capability::container(security, input.host.capabilities)?),
        // CRI has no field for them. containerd removes its defaults, too (`Rlimits = nil`): the
        // limits are inherited from the runtime's parent.
        rlimits: Vec::new(),
        no_new_privileges: security.no_new_privs,
        apparmor_profile: profile::apparmor(security, input.host, input.apparmor_profiles)?,
        oom_score_adj: resources.map(resources::oom_score_adj).transpose()?,
        selinux_label: String::new(),
    })
}

/// A command replaces the image's entry point and its arguments; arguments alone replace those.
fn args(container: &v1::ContainerConfig, image: &ImageConfig) -> Result<Vec<String>, Refusal> {
    let (mut command, mut args) = (container.command.clone(), container.args.clone());
    if command.is_empty() {
        if args.is_empty() {
            args.clone_from(&image.cmd);
        }
        // An entry point of one empty string removes that of the base image.
        if image.entrypoint != [""] {
            command.clone_from(&image.entrypoint);
        }
    }
    command.append(&mut args);
    let why = match command.first().map(String::as_str) {
        None => "no command specified: neither the container nor its image has one",
        Some("") => "the program name is empty",
        Some(_) if command.iter().any(|word| word.contains('\0')) => {
            "an argument contains a NUL byte"
        }
        Some(_) => return Ok(command),
    };
    Err(Refusal::new("command", why))
}

/// Later values win and keep the position of the earlier ones.
fn env(input: &SpecInput<'_>) -> Result<Vec<String>, Refusal> {
    let hostname = match &*input.sandbox.hostname {
        "" => &input.host.hostname,
        own => own,
    };
    let mut env = vec![format!("PATH={DEFAULT_PATH}")];
    if input.container.tty {
        env.push("TERM=xterm".to_owned());
    }
    env.push(format!("HOSTNAME={hostname}"));
    for one in &input.image.env {
        set(&mut env, one.clone());
    }
    for one in &input.container.envs {
        let value = std::str::from_utf8(&one.value).map_err(|_| {
            Refusal::new(
                "envs",
                format!("the value of {:?} is not UTF-8 text", one.key),
            )
        })?;
        if one.key.is_empty() || one.key.contains(['=', '\0']) || value.contains('\0') {
            return Err(Refusal::new(
                "envs",
                format!("{:?} is not a valid environment variable name", one.key),
            ));
        }
        set(&mut env, format!("{}={value}", one.key));
    }
    if !env.iter().any(|one| one.starts_with("HOME=")) {
        env.push(format!("HOME={}", input.user.home));
    }
    Ok(env)
}

fn set(env: &mut Vec<String>, new: String) {
    let name = |text: &str| text.split('=').next().unwrap_or_default().len();
    let end = name(&new);
    let same =
        |old: &&mut String| name(old) == end && old.as_bytes()[..end] == new.as_bytes()[..end];
    match env.iter_mut().find(same) {
        Some(old) => *old = new,
        None => env.push(new),
    }
}
