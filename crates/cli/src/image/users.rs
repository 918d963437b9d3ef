//! The containers that use an image.

use rubelet_cri::{CriResult, RuntimeService, v1};

/// The first container that was created from an image or mounts it, as text for the user.
pub(super) async fn first(
    runtime: &dyn RuntimeService,
    image: &v1::Image,
) -> CriResult<Option<String>> {
    let all = runtime.list_containers(v1::ListContainersRequest::default());
    let mut others = Vec::new();
    for container in all.await?.containers {
        let is_own = [&container.image_id, &container.image_ref]
            .into_iter()
            .any(|used| *used == image.id || image.repo_digests.contains(used));
        if is_own {
            return Ok(Some(described(&container)));
        }
        others.push(container);
    }
    for container in others {
        let request = v1::ContainerStatusRequest {
            container_id: container.id.clone(),
            verbose: false,
        };
        // It may have been removed meanwhile.
        let Ok(answer) = runtime.container_status(request).await else {
            continue;
        };
        let mounts = answer.status.unwrap_or_default().mounts;
        if mounts
            .iter()
            .filter_map(|mount| mount.image.as_ref())
            .any(|used| used.image == image.id || image.repo_tags.contains(&used.image))
        {
            return Ok(Some(described(&container)));
        }
    }
    Ok(None)
}

fn described(container: &v1::Container) -> String {
    let label = |name: &str| container.labels.get(name).map(String::as_str);
    let name = label("io.kubernetes.container.name");
    let pod = label("io.kubernetes.pod.name");
    let namespace = label("io.kubernetes.pod.namespace").unwrap_or("default");
    match (name, pod) {
        (Some(name), Some(pod)) => format!("the container {name:?} of the pod {namespace}/{pod}"),
        _ => format!(
            "the container {:?} ({})",
            container.metadata.clone().unwrap_or_default().name,
            container.id.get(..12).unwrap_or(&container.id)
        ),
    }
}
