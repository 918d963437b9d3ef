//! Tests of slices.

use rubelet_cgroup_plan::{CgroupPath, CgroupValues, cpu};

use super::*;

const UNIT: &str = "kubepods-burstable-pod1.slice";

fn values() -> CgroupValues {
    CgroupValues {
        cpu: Some(cpu::share(500)),
        cpu_quota: Some(cpu::quota(505, 100_000, true)),
        memory_limit: Some(64 << 20),
        pids_limit: Some(100),
        ..CgroupValues::default()
    }
}

fn slice(values: &CgroupValues) -> Slice<'_> {
    Slice {
        unit: UNIT,
        description: "pod 1",
        values,
        layout: CgroupLayout::V2,
    }
}

const ACCOUNTING: [&str; 4] = [
    "CPUAccounting=true",
    "MemoryAccounting=true",
    "TasksAccounting=true",
    "IOAccounting=true",
];

const LIMITS: [&str; 5] = [
    "CPUWeight=20",
    "CPUQuotaPeriodUSec=100000",
    "CPUQuotaPerSecUSec=510000",
    "MemoryMax=67108864",
    "TasksMax=100",
];

/// The properties in a call of `SetUnitProperties`.
fn set(call: &Heard) -> Vec<String> {
    let mut body = Reader::new(&call.message[call.body..]);
    assert_eq!(body.text(), Some(UNIT));
    assert_eq!(body.number(), Some(1), "until the next boot");
    properties(&mut body)
}

#[test]
fn a_slice_is_started_with_its_limits_and_without_processes() {
    let (_dir, listener, systemd) = socket(true);
    let calls = stand_in(listener, 1, |method, _| match method {
        "StartTransientUnit" => BusAnswer::Job("done"),
        _ => BusAnswer::Empty,
    });
    systemd.start_slice(&slice(&values())).unwrap();
    let heard = calls.join().unwrap();
    assert_eq!(methods(&heard)[3..], ["StartTransientUnit"]);
    let mut body = Reader::new(&heard[3].message[heard[3].body..]);
    assert_eq!(body.text(), Some(UNIT));
    assert_eq!(body.text(), Some("replace"));
    let mut expected = vec!["Description=pod 1", "DefaultDependencies=false"];
    expected.extend(ACCOUNTING);
    expected.extend(LIMITS);
    assert_eq!(properties(&mut body), expected);
    assert_eq!(body.number(), Some(0), "no auxiliary units");
}

#[test]
fn an_existing_slice_is_started_if_inactive_and_gets_the_limits() {
    let (_dir, listener, systemd) = socket(true);
    let calls = stand_in(listener, 1, |method, _| match method {
        "StartTransientUnit" => BusAnswer::Error(UNIT_EXISTS),
        "StartUnit" => BusAnswer::Job("done"),
        _ => BusAnswer::Empty,
    });
    systemd.start_slice(&slice(&values())).unwrap();
    let heard = calls.join().unwrap();
    let last = &methods(&heard)[3..];
    assert_eq!(
        last,
        ["StartTransientUnit", "StartUnit", "SetUnitProperties"]
    );
    let mut expected = ACCOUNTING.to_vec();
    expected.extend(LIMITS);
    assert_eq!(set(&heard[5]), expected);
}

#[test]
fn limits_of_a_running_slice_are_set_and_no_limits_cause_no_call() {
    let (_dir, listener, systemd) = socket(true);
    let calls = stand_in(listener, 1, |_, _| BusAnswer::Empty);
    let layout = CgroupLayout::V2;
    systemd.set_values(UNIT, layout, &values()).unwrap();
    let none = CgroupValues::default();
    systemd.set_values(UNIT, layout, &none).unwrap();
    let heard = calls.join().unwrap();
    assert_eq!(methods(&heard)[3..], ["SetUnitProperties"]);
    assert_eq!(set(&heard[3]), LIMITS);
}

#[test]
fn errors_name_the_slice() {
    const REFUSED: &str = "org.freedesktop.DBus.Error.InvalidArgs";
    let (_dir, listener, systemd) = socket(true);
    let calls = stand_in(listener, 4, |method, earlier| match (method, earlier) {
        ("StartTransientUnit", 0) | ("SetUnitProperties", _) => BusAnswer::Error(REFUSED),
        ("StartTransientUnit", 1) => BusAnswer::Job("dependency"),
        ("StartTransientUnit", _) => BusAnswer::Error(UNIT_EXISTS),
        ("StartUnit", _) => BusAnswer::Job("done"),
        _ => BusAnswer::Empty,
    });
    let start = || {
        let error = systemd.start_slice(&slice(&values())).unwrap_err();
        error.to_string()
    };
    for expected in [
        "systemd refused the start of kubepods-burstable-pod1.slice: it was not to be (org.",
        "systemd's job for kubepods-burstable-pod1.slice ended as `dependency`",
        "systemd refused new limits of kubepods-burstable-pod1.slice: it was not to be (org.",
    ] {
        let error = start();
        assert!(error.starts_with(expected), "{error}");
    }
    let layout = CgroupLayout::V2;
    let error = systemd.set_values(UNIT, layout, &values()).unwrap_err();
    assert!(error.to_string().contains("refused new limits of"));
    calls.join().unwrap();
    // The listener is closed.
    let error = start();
    assert!(
        error.starts_with("cannot reach systemd through "),
        "{error}"
    );
}

#[test]
fn a_real_bus_accepts_the_messages_of_slices() {
    let Some(bus) = Bus::start() else {
        rubelet_needs::missing("dbus-daemon");
        return;
    };
    let systemd = Systemd::on_bus(&bus.socket());
    let start = systemd.start_slice(&slice(&values())).unwrap_err();
    let layout = CgroupLayout::V2;
    let set = systemd.set_values(UNIT, layout, &values()).unwrap_err();
    for error in [start, set] {
        let text = error.to_string();
        assert!(
            text.contains("org.freedesktop.DBus.Error.ServiceUnknown"),
            "{text}"
        );
    }
}

fn systemctl(args: &[&str]) -> String {
    let output = Command::new("systemctl").args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs as root on a machine with systemd and cgroups of version 2, as the one of the test bed is.
#[test]
fn a_real_systemd_keeps_slices_with_their_limits() {
    let found = Systemd::find();
    if !rubelet_needs::applies(found.is_some(), "systemd does not run here") {
        return;
    }
    let systemd = found.unwrap();
    let cgroups = crate::CgroupFs::detect(Path::new("/sys/fs/cgroup")).unwrap();
    let layout = cgroups.layout();
    let unit = format!("rubelet-slices{}.slice", std::process::id());
    let path = CgroupPath::parse(&format!("/rubelet.slice/{unit}")).unwrap();
    let assert_values = |expected: [&str; 4], when: &str| {
        let found = ["cpu.weight", "cpu.max", "memory.max", "pids.max"].map(|file| {
            let text = fs::read_to_string(format!("/sys/fs/cgroup{path}/{file}"));
            text.unwrap().trim().to_owned()
        });
        assert_eq!(found, expected, "{when}");
    };
    let reload = || drop(systemctl(&["daemon-reload"]));
    let start = |values: &CgroupValues| {
        let slice = Slice {
            unit: &unit,
            description: "a test",
            values,
            layout,
        };
        systemd.start_slice(&slice).unwrap();
    };

    // A slice that systemd started for a unit in it has no limits yet.
    systemd.start(&unit).unwrap();
    let limited = values();
    start(&limited);
    cgroups.ensure(&path).unwrap();
    let in_force = limited.clone().under_systemd();
    cgroups.write(&path, &in_force).unwrap();
    let expected = ["20", "51000 100000", "67108864", "100"];
    assert_values(expected, "started");
    reload();
    assert_values(expected, "after a reload");

    let free = CgroupValues {
        cpu: Some(cpu::share(1000)),
        cpu_quota: Some(cpu::quota(0, 100_000, false)),
        memory_limit: Some(u64::MAX),
        ..CgroupValues::default()
    };
    systemd.set_values(&unit, layout, &free).unwrap();
    reload();
    assert_values(["39", "max 100000", "max", "100"], "lifted");
    // As a restarted agent does.
    start(&limited);
    reload();
    assert_values(expected, "set again");

    systemd.stop(&unit).unwrap();
    systemd.stop(&unit).unwrap();
    assert!(!cgroups.exists(&path));
    let list = ["list-units", "--all", "--plain", "--no-legend", &unit];
    assert_eq!(systemctl(&list), "");
    let transient = Path::new("/run/systemd/transient").join(&unit);
    assert!(!transient.exists(), "{}", transient.display());
    // A new slice of that name does not inherit the limits. It has to be a transient one: since the
    // reload, systemd expects the file of the one before.
    start(&CgroupValues::default());
    let shown = systemctl(&["show", "-p", "MemoryMax,TasksMax", &unit]);
    assert_eq!(shown, "MemoryMax=infinity\nTasksMax=infinity\n");
    systemd.stop(&unit).unwrap();
}
