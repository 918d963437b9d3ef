//! Files of version 2 that a container's specification names itself.

use std::collections::BTreeMap;

use crate::cgroup::write::Writer;

pub(super) fn apply(writer: &mut Writer<'_>, values: &BTreeMap<String, String>, v2: bool) {
    for (file, value) in values {
        if let Err(why) = check(file, v2) {
            writer.refuse(&format!("unified[{file}]"), value, why);
            continue;
        }
        let controller = file.split('.').next().unwrap_or_default().to_owned();
        // Files such as `io.max` accept one line, for one device, per write.
        for line in value.lines() {
            writer.write(&controller, file, line);
        }
    }
}

fn check(file: &str, v2: bool) -> Result<(), &'static str> {
    if !v2 {
        return Err("only cgroup version 2 has such files, and this machine runs version 1");
    }
    let is_name = !file.contains('/') && file.contains('.') && !file.starts_with('.');
    if !is_name {
        return Err("this is not the name of a file in a cgroup, such as `memory.high`");
    }
    // They move, freeze or kill processes, or change the structure of cgroups.
    let is_core = file.starts_with("cgroup.") && !file.starts_with("cgroup.max.");
    if is_core {
        return Err("the files of the cgroup itself are the runtime's");
    }
    Ok(())
}
