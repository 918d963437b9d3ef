//! The ID mappings of user namespaces.

use rubelet_cri::v1;
use rubelet_oci::{IdMapping, IdMappings};

use crate::Refusal;

/// Reads the mappings; `None` is the host's user namespace.
///
/// # Errors
/// A mode other than `POD` and `NODE`, mappings with `NODE`, more or fewer than one range, an empty
/// range, one without root, ranges of users and groups that differ.
pub fn mappings(options: Option<&v1::UserNamespace>) -> Result<Option<IdMappings>, Refusal> {
    const FIELD: &str = "linux.security_context.namespace_options.userns_options";
    let Some(options) = options else {
        return Ok(None);
    };
    match v1::NamespaceMode::try_from(options.mode) {
        Ok(v1::NamespaceMode::Node) => {
            if options.uids.is_empty() && options.gids.is_empty() {
                Ok(None)
            } else {
                Err(Refusal::new(
                    FIELD,
                    "the host's user namespace (mode NODE) takes no mappings",
                ))
            }
        }
        Ok(v1::NamespaceMode::Pod) => {
            let uids = range(&options.uids, &format!("{FIELD}.uids"))?;
            let gids = range(&options.gids, &format!("{FIELD}.gids"))?;
            if uids != gids {
                return Err(Refusal::new(
                    FIELD,
                    "the mappings of users and groups must be the same",
                ));
            }
            Ok(Some(IdMappings {
                uids: vec![uids],
                gids: vec![gids],
            }))
        }
        _ => Err(Refusal::new(
            format!("{FIELD}.mode"),
            format!("mode {} is not supported; POD and NODE are", options.mode),
        )),
    }
}

fn range(mappings: &[v1::IdMapping], field: &str) -> Result<IdMapping, Refusal> {
    let [one] = mappings else {
        return Err(Refusal::new(
            field,
            format!("exactly one range is required, got {}", mappings.len()),
        ));
    };
    let fits = |first: u32| first.checked_add(one.length).is_some();
    if one.length == 0 || !fits(one.host_id) || !fits(one.container_id) {
        return Err(Refusal::new(
            field,
            format!(
                "{} IDs from container ID {} and host ID {} are not a valid range",
                one.length, one.container_id, one.host_id
            ),
        ));
    }
    if one.container_id != 0 {
        // Files that the runtime creates in the pod belong to its root.
        return Err(Refusal::new(
            field,
            format!(
                "the range begins at container ID {}; it must begin at 0",
                one.container_id
            ),
        ));
    }
    Ok(convert(one))
}

/// The CRI's mapping in the OCI's form.
pub(crate) fn convert(mapping: &v1::IdMapping) -> IdMapping {
    IdMapping {
        container_id: mapping.container_id,
        host_id: mapping.host_id,
        size: mapping.length,
    }
}

/// The host ID to which the container ID `inside` is mapped.
#[must_use]
pub fn outside(mappings: &[IdMapping], inside: u32) -> Option<u32> {
    mappings.iter().find_map(|one| {
        let offset = inside.checked_sub(one.container_id)?;
        (offset < one.size).then(|| one.host_id + offset)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(uids: &[(u32, u32, u32)], gids: &[(u32, u32, u32)]) -> v1::UserNamespace {
        let convert = |ranges: &[(u32, u32, u32)]| {
            ranges
                .iter()
                .map(|&(container_id, host_id, length)| v1::IdMapping {
                    host_id,
                    container_id,
                    length,
                })
                .collect()
        };
        v1::UserNamespace {
            mode: v1::NamespaceMode::Pod.into(),
            uids: convert(uids),
            gids: convert(gids),
        }
    }

    #[test]
    fn one_equal_range_for_users_and_groups_is_a_user_namespace() {
        let wanted = pod(&[(0, 65536, 65536)], &[(0, 65536, 65536)]);
        let found = mappings(Some(&wanted)).unwrap().unwrap();
        assert_eq!(outside(&found.uids, 1000), Some(66536));
        assert_eq!(outside(&found.uids, 65536), None);
        assert_eq!(mappings(None), Ok(None));
    }

    #[test]
    fn what_the_kernel_or_idmapped_mounts_could_not_do_is_refused() {
        let one = (0, 65536, 65536);
        for wanted in [
            pod(&[], &[]),
            pod(&[one], &[]),
            pod(&[one, (65536, 1 << 20, 10)], &[one]),
            pod(&[one], &[(0, 131_072, 65536)]),
            pod(&[(0, 1, 0)], &[(0, 1, 0)]),
            pod(&[(1, 1000, 100_000)], &[(1, 1000, 100_000)]),
            pod(&[(0, u32::MAX, 2)], &[(0, u32::MAX, 2)]),
            v1::UserNamespace {
                mode: v1::NamespaceMode::Node.into(),
                ..pod(&[one], &[one])
            },
            v1::UserNamespace {
                mode: v1::NamespaceMode::Container.into(),
                ..pod(&[one], &[one])
            },
        ] {
            assert!(mappings(Some(&wanted)).is_err(), "{wanted:?} was taken");
        }
    }
}
