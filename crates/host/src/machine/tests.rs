//! Tests of `machine`.

use super::*;

fn fake(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::Builder::new()
        .prefix("rbt-host-")
        .tempdir()
        .unwrap();
    for (name, text) in files {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

const FILES: [(&str, &str); 6] = [
    (
        "proc/meminfo",
        "MemTotal:       2048 kB\nSwapTotal:  1024 kB\n",
    ),
    ("sys/devices/system/cpu/online", "0-3,6,8-9\n"),
    ("proc/sys/kernel/random/boot_id", "b00t\n"),
    ("var/lib/dbus/machine-id", "abc\n"),
    (
        "sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages",
        "0\n",
    ),
    (
        "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
        "3\n",
    ),
];

#[test]
fn facts_are_read_from_the_kernels_files() {
    let machine = Machine::read(fake(&FILES).path()).unwrap();
    assert_eq!(machine.cpus, 7);
    assert_eq!((machine.memory, machine.swap), (2 << 20, 1 << 20));
    assert_eq!(machine.boot_id, "b00t");
    assert_eq!(machine.machine_id.as_deref(), Some("abc"));
    let pools = [(2 << 20, 3), (1 << 30, 0)];
    assert_eq!(
        machine.hugepages,
        pools.map(|(page_size, pages)| HugepagePool { page_size, pages })
    );
}

#[test]
fn what_is_missing_is_named() {
    let error = |files: &[(&str, &str)]| Machine::read(fake(files).path()).unwrap_err().to_string();
    assert!(
        error(&FILES[1..]).starts_with("cannot read "),
        "{}",
        error(&FILES[1..])
    );
    let mut files = FILES;
    files[0].1 = "MemFree: 1 kB\n";
    assert!(
        error(&files).ends_with("proc/meminfo has no MemTotal"),
        "{}",
        error(&files)
    );
    files = FILES;
    files[1].1 = "3-1\n";
    assert!(
        error(&files).ends_with("online has no list of processors"),
        "{}",
        error(&files)
    );
}

#[test]
fn swap_is_on_when_an_area_is_listed() {
    let heading = "Filename\t\t\t\tType\t\tSize\n";
    let area = format!("{heading}/dev/sda2 partition 1024\n");
    assert!(!swap_is_on(fake(&[]).path()).unwrap());
    assert!(!swap_is_on(fake(&[("proc/swaps", heading)]).path()).unwrap());
    assert!(swap_is_on(fake(&[("proc/swaps", &area)]).path()).unwrap());
}

#[test]
fn this_machine_can_be_read() {
    let machine = Machine::read(Path::new("/")).unwrap();
    assert!(machine.cpus > 0 && machine.memory > 0 && !machine.boot_id.is_empty());
}
