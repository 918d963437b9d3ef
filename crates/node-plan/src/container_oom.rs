//! The kernel's messages about processes of containers that it kills for lack of memory.
//!
//! Source: `mm/oom_kill.c` and `mm/memcontrol.c` of Linux 5.0 and later. The kernel writes a message before it kills, so it
//! is there before the container's exit.

use rubelet_cgroup_plan::runtime_cgroup;

/// How the message of a single victim begins. At most ten of them are written in five seconds.
const ONE_VICTIM: &str = "oom-kill:constraint=";
/// What precedes the victim's cgroup in it. Names of cgroups and of the process follow, which a container may choose.
const CGROUP_OF_VICTIM: &str = ",task_memcg=";
/// What follows the victim's cgroup.
const AFTER_CGROUP: &str = ",task=";
/// What surrounds the cgroup in the message of a whole cgroup that is killed (`memory.oom.group`). It is always written.
const WHOLE_CGROUP: [&str; 2] = [
    "Tasks in ",
    " are going to be killed due to memory.oom.group set",
];

/// The identifier of the container that the message is about.
#[must_use]
pub fn container_of_message(message: &str) -> Option<&str> {
    runtime_cgroup::container_in(cgroup_of_message(message)?)
}

fn cgroup_of_message(message: &str) -> Option<&str> {
    if let Some(rest) = message.strip_prefix(ONE_VICTIM) {
        let (before, rest) = rest.split_once(CGROUP_OF_VICTIM)?;
        let (cgroup, _) = rest.split_once(AFTER_CGROUP)?;
        // A cgroup that is named like another part of the message is to deceive.
        let is_clear = !before.contains(AFTER_CGROUP) && !rest.contains(CGROUP_OF_VICTIM);
        return is_clear.then_some(cgroup);
    }
    let [before, after] = WHOLE_CGROUP;
    message.strip_prefix(before)?.strip_suffix(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCOPE: &str = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0e1f_2d.slice/\
                         cri-containerd-c1.scope";
    const DIRECTORY: &str = "/kubepods/burstable/pod0e1f-2d/c1";

    /// The message about a process of one cgroup that is killed because of the limit of another.
    fn victim(limited: &str, cgroup: &str) -> String {
        format!(
            "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset={cgroup},mems_allowed=0,oom_memcg={limited},\
             task_memcg={cgroup},task=stress,pid=77,uid=0"
        )
    }

    fn group(cgroup: &str) -> String {
        format!("Tasks in {cgroup} are going to be killed due to memory.oom.group set")
    }

    #[test]
    fn the_container_of_a_victim_is_found() {
        for cgroup in [SCOPE, DIRECTORY] {
            for message in [
                victim(cgroup, cgroup),
                victim("/kubepods", cgroup),
                victim(cgroup, &format!("{cgroup}/below/c2")),
                group(cgroup),
                format!(
                    "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset={cgroup},mems_allowed=0,global_oom,\
                     task_memcg={cgroup},task=a,pid=1,uid=0"
                ),
                victim(cgroup, cgroup).replace("stress", "a,pid=1,uid=0,b"),
            ] {
                assert_eq!(container_of_message(&message), Some("c1"), "{message}");
            }
        }
    }

    #[test]
    fn other_messages_name_no_container() {
        let other = format!("{DIRECTORY}/x,task_memcg=/kubepods/pod2/c2");
        for message in [
            victim("/system.slice", "/system.slice/sshd.service"),
            group("/kubepods/burstable/pod0e1f-2d"),
            // Names that are made to deceive.
            victim(DIRECTORY, &other),
            victim(
                DIRECTORY,
                &format!("{DIRECTORY}/x,task=a,task_memcg=/kubepods/pod2/c2"),
            ),
            victim(DIRECTORY, DIRECTORY).replace(",task=stress,pid=77,uid=0", ""),
            "Memory cgroup out of memory: Killed process 77 (stress) total-vm:1kB".to_owned(),
            format!(" {}", group(DIRECTORY)),
            format!("{} ", group(DIRECTORY)),
            String::new(),
        ] {
            assert_eq!(container_of_message(&message), None, "{message}");
        }
    }
}
