//! PID namespaces of containers.

use rubelet_cri::v1::{NamespaceMode, NamespaceOption};

use crate::Refusal;

/// The PID namespace of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PidPlacement<'a> {
    /// That of the host.
    Host,
    /// The pod's shared one.
    Pod,
    /// A new one.
    Own,
    /// That of another container of the pod, by its identifier.
    Target(&'a str),
}

/// Decides from the mode of the sandbox and the options of the container. A container without a
/// mode uses its pod's, and `POD` means the pod's namespace, even if that is the host's.
///
/// # Errors
/// The container requests a namespace that its pod does not have: the host's, or a shared one in a
/// pod whose containers each have their own.
pub fn pid(sandbox: i32, container: Option<&NamespaceOption>) -> Result<PidPlacement<'_>, Refusal> {
    const FIELD: &str = "linux.security_context.namespace_options.pid";
    let sandbox = NamespaceMode::try_from(sandbox).unwrap_or(NamespaceMode::Container);
    let Some(options) = container else {
        return Ok(match sandbox {
            NamespaceMode::Node => PidPlacement::Host,
            NamespaceMode::Pod => PidPlacement::Pod,
            NamespaceMode::Container | NamespaceMode::Target => PidPlacement::Own,
        });
    };
    match (NamespaceMode::try_from(options.pid), sandbox) {
        (Ok(NamespaceMode::Node | NamespaceMode::Pod), NamespaceMode::Node) => {
            Ok(PidPlacement::Host)
        }
        (Ok(NamespaceMode::Pod), NamespaceMode::Pod) => Ok(PidPlacement::Pod),
        (Ok(NamespaceMode::Container), _) => Ok(PidPlacement::Own),
        (Ok(NamespaceMode::Target), _) if options.target_id.is_empty() => Err(Refusal::new(
            "linux.security_context.namespace_options.target_id",
            "it must not be empty with pid TARGET",
        )),
        (Ok(NamespaceMode::Target), _) => Ok(PidPlacement::Target(&options.target_id)),
        (Ok(NamespaceMode::Node), _) => Err(Refusal::new(
            FIELD,
            "NODE requires a sandbox that was created with pid NODE",
        )),
        (Ok(NamespaceMode::Pod), _) => Err(Refusal::new(
            FIELD,
            "POD requires a sandbox that was created with pid POD or NODE; this one was created with CONTAINER",
        )),
        (Err(_), _) => Err(Refusal::new(FIELD, format!("unknown mode {}", options.pid))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_sees_no_more_than_its_pod_was_made_for() {
        use NamespaceMode::{Container, Node, Pod, Target};
        let ask = |sandbox: NamespaceMode, own: NamespaceMode| {
            let options = NamespaceOption {
                pid: own.into(),
                target_id: "c0".into(),
                ..Default::default()
            };
            match pid(sandbox.into(), Some(&options)) {
                Ok(PidPlacement::Host) => "host",
                Ok(PidPlacement::Pod) => "pod",
                Ok(PidPlacement::Own) => "own",
                Ok(PidPlacement::Target(id)) => {
                    assert_eq!(id, "c0");
                    "target"
                }
                Err(_) => "refused",
            }
        };
        for (sandbox, own, expected) in [
            (Pod, Pod, "pod"),
            (Pod, Node, "refused"),
            (Container, Container, "own"),
            (Container, Pod, "refused"),
            (Container, Node, "refused"),
            (Container, Target, "target"),
            (Node, Node, "host"),
            (Node, Pod, "host"),
            (Pod, Container, "own"),
        ] {
            assert_eq!(ask(sandbox, own), expected, "{sandbox:?} {own:?}");
        }
    }

    #[test]
    fn a_container_that_says_nothing_does_as_its_pod() {
        for (sandbox, expected) in [
            (NamespaceMode::Node, PidPlacement::Host),
            (NamespaceMode::Pod, PidPlacement::Pod),
            (NamespaceMode::Container, PidPlacement::Own),
        ] {
            assert_eq!(pid(sandbox.into(), None), Ok(expected));
        }
        let nameless = NamespaceOption {
            pid: NamespaceMode::Target.into(),
            ..Default::default()
        };
        assert!(pid(NamespaceMode::Container.into(), Some(&nameless)).is_err());
    }
}
