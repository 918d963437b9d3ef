//! Tests of `kernel`.

use super::*;

fn root() -> tempfile::TempDir {
    let mut builder = tempfile::Builder::new();
    builder.prefix("rbt-runtime-").tempdir().unwrap()
}

fn write(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn an_old_kernel_is_named_with_what_it_lacks() {
    assert_eq!(release("6.1.0-18-amd64"), None);
    let severity = |text| release(text).map(|finding| finding.severity);
    assert_eq!(severity("5.4.0-generic"), Some(Severity::Error));
    assert_eq!(severity("5.10.0"), Some(Severity::Warning));
}

#[test]
fn a_kernel_without_rules_for_bridges_is_reported() {
    assert_eq!(sender_rules(None), None);
    let found = sender_rules(Some("not supported".to_owned())).unwrap();
    assert!(found.what.contains("not supported"), "{found:?}");
    assert_eq!(found.severity, Severity::Warning);
}

#[test]
fn security_modules_and_cgroup_drivers_that_do_not_fit_are_reported() {
    let root = root();
    let write = |name: &str, text: &str| write(root.path(), name, text);
    let told = |text: &str| {
        let findings = security_modules(root.path());
        findings.iter().any(|finding| finding.what.contains(text))
    };
    assert!(told("AppArmor is not enabled") && !told("SELinux"));
    write("sys/module/apparmor/parameters/enabled", "Y\n");
    write("sys/fs/selinux/enforce", "1");
    assert!(told("rubelet-default cannot be loaded") && told("SELinux is enabled"));

    let severity = |driver| cgroup_driver(root.path(), driver).map(|finding| finding.severity);
    assert_eq!(severity(CgroupDriver::Systemd), Some(Severity::Error));
    assert_eq!(severity(CgroupDriver::Cgroupfs), None);
    fs::create_dir_all(root.path().join("run/systemd/system")).unwrap();
    assert_eq!(severity(CgroupDriver::Systemd), None);
    assert_eq!(severity(CgroupDriver::Cgroupfs), Some(Severity::Note));
}

#[test]
fn a_missing_file_system_is_an_error_unless_its_module_can_be_loaded() {
    let root = root();
    let write = |name: &str, text: &str| write(root.path(), name, text);
    write("proc/filesystems", "nodev\ttmpfs\nnodev\tmqueue\n\text4\n");
    let found = file_systems(root.path());
    assert_eq!(found.len(), 1);
    assert!(found[0].what.contains("`overlay`"), "{found:?}");
    write("proc/sys/kernel/osrelease", "6.1.0\n");
    write(
        "lib/modules/6.1.0/modules.dep",
        "kernel/fs/overlayfs/overlay.ko.xz:\n",
    );
    assert_eq!(file_systems(root.path()), []);
}
