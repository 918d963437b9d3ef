//! Rules, what they come to, the program for them, and both enforced by the kernel.

use std::{
    fs,
    os::fd::AsFd,
    path::Path,
    process::{Command, Stdio},
};

use rubelet_oci::DeviceKind;

use super::{program::code, *};
use crate::{
    bpf::{self, Instruction},
    cgroup::tests::{real, remove},
};

fn rule(allow: bool, text: &str) -> DeviceRule {
    let (kind, rest) = text.split_once(' ').unwrap();
    let (numbers, access) = rest.split_once(' ').unwrap();
    let (major, minor) = numbers.split_once(':').unwrap();
    DeviceRule {
        allow,
        kind: match kind {
            "c" => DeviceKind::Char,
            "b" => DeviceKind::Block,
            "p" => DeviceKind::Fifo,
            _ => DeviceKind::All,
        },
        major: major.parse().ok(),
        minor: minor.parse().ok(),
        access: access.to_owned(),
    }
}

fn deny(text: &str) -> DeviceRule {
    rule(false, text)
}

fn allow(text: &str) -> DeviceRule {
    rule(true, text)
}

/// The default, and the exceptions from it as version 1 takes them.
fn policy(rules: &[DeviceRule]) -> (bool, Vec<String>) {
    let policy = Policy::from_rules(rules).unwrap();
    let exceptions = policy.exceptions().map(|one| one.to_string()).collect();
    (policy.allows_by_default(), exceptions)
}

fn refusal(rules: &[DeviceRule]) -> String {
    Policy::from_rules(rules).unwrap_err().to_string()
}

#[test]
fn without_rules_everything_is_denied() {
    assert_eq!(policy(&[]), (false, vec![]));
}

#[test]
fn the_usual_rules_of_a_container_are_a_list_of_what_is_allowed() {
    let rules = [
        deny("a *:* rwm"),
        allow("c 1:3 rw"),
        allow("c *:* m"),
        allow("b *:* m"),
        allow("c 1:3 m"),
        allow("c 136:* rwm"),
    ];
    let expected = ["c *:* m", "c 1:3 rwm", "c 136:* rwm", "b *:* m"];
    assert_eq!(
        policy(&rules),
        (false, expected.map(str::to_owned).to_vec())
    );
}

#[test]
fn a_rule_for_all_devices_forgets_those_before_it() {
    let rules = [allow("c 1:3 rwm"), deny("b 8:0 rwm"), allow("a *:* rwm")];
    assert_eq!(policy(&rules), (true, vec![]));
    let rules = [allow("a *:* rwm"), deny("b 8:0 w"), deny("a *:* m")];
    let expected = ["c *:* m", "b *:* m", "b 8:0 w"];
    assert_eq!(policy(&rules), (true, expected.map(str::to_owned).to_vec()));
}

#[test]
fn later_rules_take_back_what_they_cover() {
    let rules = [allow("c 1:3 rwm"), allow("c 1:5 r"), deny("c 1:* w")];
    let expected = ["c 1:3 rm", "c 1:5 r"];
    assert_eq!(
        policy(&rules),
        (false, expected.map(str::to_owned).to_vec())
    );
    let rules = [
        allow("c 1:3 r"),
        deny("c 1:3 r"),
        deny("c 5:1 r"),
        deny("b *:3 r"),
    ];
    assert_eq!(policy(&rules), (false, vec![]));
}

#[test]
fn what_cgroups_cannot_express_is_refused_and_not_forgotten() {
    let text = refusal(&[allow("c 1:* rwm"), deny("c 1:3 w")]);
    assert!(
        text.contains("`deny c 1:3 w` takes back a part of the earlier rule `allow c 1:* rwm`"),
        "{text}"
    );
    for (rule, part) in [
        (allow("c 1:3 "), "names no access"),
        (allow("c 1:3 rx"), "names no access"),
        (allow("p 1:3 r"), "don't restrict"),
        (allow("c 1:3000000 r"), "out of range"),
        (allow("c -2:3 r"), "out of range"),
    ] {
        let text = refusal(&[rule]);
        assert!(text.contains(part), "{text}");
    }
}

/// Runs a program as the kernel does. The access is made of letters.
fn run(program: &[Instruction], kind: u32, access: &str, major: u32, minor: u32) -> bool {
    let bits = access.chars().map(|letter| match letter {
        'r' => u32::from(policy::READ),
        'w' => u32::from(policy::WRITE),
        _ => u32::from(policy::MKNOD),
    });
    let context = [kind | bits.sum::<u32>() << 16, major, minor];
    let mut registers = [0_u64; 6];
    let mut at = 0_i32;
    loop {
        let step = program[usize::try_from(at).unwrap()];
        let target = usize::from(step.registers & 15);
        let source = usize::from(step.registers >> 4);
        let number = u64::try_from(step.immediate).unwrap();
        at += 1;
        let jumps = match step.code {
            code::LOAD => {
                let word = usize::try_from(step.offset).unwrap() / 4;
                registers[target] = context[word].into();
                false
            }
            code::COPY => {
                registers[target] = registers[source];
                false
            }
            code::AND => {
                registers[target] &= number;
                false
            }
            code::SHIFT => {
                registers[target] >>= number;
                false
            }
            code::PUT => {
                registers[target] = number;
                false
            }
            code::JUMP => true,
            code::JUMP_UNEQUAL => registers[target] != number,
            code::JUMP_COMMON => registers[target] & number != 0,
            code::EXIT => return registers[0] != 0,
            other => panic!("{other:#x}"),
        };
        if jumps {
            at += i32::from(step.offset);
        }
    }
}

#[test]
fn the_program_decides_as_the_rules_say() {
    const BLOCK: u32 = 1;
    const CHAR: u32 = 2;
    let rules = [
        allow("c *:* m"),
        allow("c 1:3 rwm"),
        allow("c 1:8 r"),
        allow("c 136:* rw"),
        allow("b 7:1 rw"),
    ];
    let some = program::program(&Policy::from_rules(&rules).unwrap());
    for (kind, access, major, minor, expected) in [
        (CHAR, "rw", 1, 3, true),
        (CHAR, "rwm", 1, 3, true),
        (CHAR, "m", 99, 7, true),
        (CHAR, "r", 1, 8, true),
        (CHAR, "rw", 1, 8, false),
        (CHAR, "w", 1, 8, false),
        (CHAR, "rw", 136, 4711, true),
        (CHAR, "rwm", 136, 4711, false),
        (CHAR, "r", 10, 200, false),
        (BLOCK, "r", 1, 3, false),
        (BLOCK, "m", 99, 7, false),
        (BLOCK, "rw", 7, 1, true),
        (BLOCK, "r", 7, 0, false),
        (BLOCK, "r", 8, 1, false),
    ] {
        let decided = run(&some, kind, access, major, minor);
        assert_eq!(decided, expected, "{kind} {access} {major}:{minor}");
    }

    let rules = [allow("a *:* rwm"), deny("b 8:* rw"), deny("c 1:11 rwm")];
    let most = program::program(&Policy::from_rules(&rules).unwrap());
    for (kind, access, major, minor, expected) in [
        (BLOCK, "r", 8, 0, false),
        (BLOCK, "rm", 8, 3, false),
        (BLOCK, "m", 8, 0, true),
        (BLOCK, "rw", 9, 0, true),
        (CHAR, "m", 1, 11, false),
        (CHAR, "rwm", 8, 0, true),
    ] {
        let decided = run(&most, kind, access, major, minor);
        assert_eq!(decided, expected, "{kind} {access} {major}:{minor}");
    }
    let all = program::program(&Policy::from_rules(&[allow("a *:* rwm")]).unwrap());
    assert!(run(&all, BLOCK, "rwm", 8, 0));
    let none = program::program(&Policy::from_rules(&[]).unwrap());
    assert!(!run(&none, CHAR, "r", 1, 3));
}

/// Whether a process in the cgroup may open a device for reading.
fn opens(cgroups: &CgroupFs, path: &CgroupPath, device: &str) -> bool {
    let target = cgroups.target(path).unwrap();
    // It waits for its input, and by then it is in the cgroup.
    let mut child = Command::new("sh")
        .args(["-c", "read go && : < \"$0\"", device])
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    target.add(child.id().cast_signed()).unwrap();
    io::Write::write_all(&mut child.stdin.take().unwrap(), b"go\n").unwrap();
    child.wait().unwrap().success()
}

fn check(cgroups: &CgroupFs, path: &CgroupPath) {
    let usual = [deny("a *:* rwm"), allow("c *:* m"), allow("c 1:5 rwm")];
    // Twice: the second call stands instead of the first.
    for allowed in ["c 1:9 r", "c 1:3 rw"] {
        let rules = [&usual[..], &[allow(allowed)]].concat();
        cgroups.apply_devices(path, &rules).unwrap();
    }
    assert!(opens(cgroups, path, "/dev/null"));
    assert!(opens(cgroups, path, "/dev/zero"));
    assert!(!opens(cgroups, path, "/dev/urandom"));
    cgroups.apply_devices(path, &[allow("a *:* rwm")]).unwrap();
    assert!(opens(cgroups, path, "/dev/urandom"));
    cgroups
        .apply_devices(path, &[allow("a *:* rwm"), deny("c 1:9 r")])
        .unwrap();
    assert!(!opens(cgroups, path, "/dev/urandom"));
    assert!(opens(cgroups, path, "/dev/null"));
    cgroups.apply_devices(path, &[]).unwrap();
    assert!(!opens(cgroups, path, "/dev/null"));
}

#[test]
fn the_kernel_enforces_the_rules() {
    let Some((cgroups, path)) = real("devices") else {
        return;
    };
    check(&cgroups, &path);
    remove(&cgroups, &path);
}

#[test]
fn the_kernel_takes_the_program() {
    let Some((cgroups, path)) = real("program") else {
        return;
    };
    let Some(unified) = cgroups
        .hierarchies
        .iter()
        .find(|one| one.controllers.is_empty())
    else {
        rubelet_needs::missing("a mounted cgroup2");
        return;
    };
    // As on a machine without the controllers of version 1, one of which would do it otherwise.
    let only = CgroupFs {
        layout: CgroupLayout::V2,
        hierarchies: vec![unified.clone()],
    };
    check(&only, &path);

    let dir = fs::File::open(unified.dir(&path)).unwrap();
    let attached = bpf::attached(dir.as_fd()).unwrap();
    assert_eq!(
        attached.len(),
        1,
        "those of earlier calls are gone: {attached:?}"
    );
    remove(&cgroups, &path);
}

#[test]
fn without_anything_that_enforces_them_rules_are_an_error() {
    let none = CgroupFs {
        layout: CgroupLayout::V1,
        hierarchies: Vec::new(),
    };
    let path = CgroupPath::parse("/a").unwrap();
    let error = none.apply_devices(&path, &[]).unwrap_err();
    assert!(
        error.to_string().contains("neither the cgroup controller"),
        "{error}"
    );
    let missing = attach::attach(Path::new("/no/such/cgroup"), &[]).unwrap_err();
    assert!(matches!(missing, DevicesError::Open { .. }));
}
