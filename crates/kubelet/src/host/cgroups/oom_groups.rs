//! The files that say whether an OOM kill ends a whole container.

use rubelet_api::pod::Pod;
use rubelet_base::ContainerId;
use rubelet_cgroup_plan::runtime_cgroup::is_of_container;
use rubelet_host::cgroup::OomGroupFile;

use super::PodCgroups;

/// The end of a name of a cgroup that systemd manages.
const SCOPE: &str = ".scope";

impl PodCgroups {
    /// Those of these containers of a pod whose cgroups are scopes of systemd.
    pub(in crate::host) fn oom_groups(
        &self,
        pod: &Pod,
        containers: &[ContainerId],
    ) -> Vec<(ContainerId, OomGroupFile)> {
        let Ok(path) = self.systemd.pod(pod.spec.qos, &pod.uid) else {
            return Vec::new();
        };
        let names = self.fs.child_names(&path);
        let scopes = names.iter().filter(|name| name.ends_with(SCOPE));
        scopes
            .filter_map(|name| {
                let mut containers = containers.iter();
                let id = containers.find(|id| is_of_container(name, id.as_str()))?;
                let file = self.fs.oom_group(&path.join(name).ok()?)?;
                Some((id.clone(), file))
            })
            .collect()
    }
}
