//! Conversations with a stand-in on a socket of the test, and with a real bus where there is one.

mod slices;

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    process::{Child, Command, Stdio},
    thread::JoinHandle,
};

use rubelet_oci::Memory;

use super::*;
use crate::cgroup::StatsScope;
use crate::dbus::{message, wire::Reader};

/// What the stand-in answers to a call.
enum BusAnswer {
    /// Nothing in it.
    Empty,
    /// The path of a job, which ended like this just before.
    Job(&'static str),
    /// A refusal.
    Error(&'static str),
}

/// One call that came: its method, the whole message, and where its body begins.
struct Heard {
    method: String,
    message: Vec<u8>,
    body: usize,
}

/// Takes one conversation after the other, and returns the calls when they are over.
fn stand_in(
    listener: UnixListener,
    conversations: usize,
    answer: impl Fn(&str, usize) -> BusAnswer + Send + 'static,
) -> JoinHandle<Vec<Heard>> {
    std::thread::spawn(move || {
        let mut heard: Vec<Heard> = Vec::new();
        for _ in 0..conversations {
            let (stream, _) = listener.accept().unwrap();
            let mut input = BufReader::new(stream.try_clone().unwrap());
            let mut output = stream;
            let mut line = String::new();
            input.read_line(&mut line).unwrap();
            let user = rustix::process::geteuid().as_raw().to_string();
            let user: String = user.bytes().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(line, format!("\0AUTH EXTERNAL {user}\r\n"));
            output.write_all(b"OK 1234deadbeef\r\n").unwrap();
            line.clear();
            input.read_line(&mut line).unwrap();
            assert_eq!(line, "BEGIN\r\n");
            while let Some(call) = hear(&mut input) {
                let serial = u32::from_le_bytes(call.message[8..12].try_into().unwrap());
                let earlier = heard.iter().filter(|other| other.method == call.method);
                for message in reply(serial, &answer(&call.method, earlier.count())) {
                    output.write_all(&message).unwrap();
                }
                heard.push(call);
            }
        }
        heard
    })
}

fn hear(input: &mut impl Read) -> Option<Heard> {
    let mut message = vec![0; message::START];
    input.read_exact(&mut message).ok()?;
    let length = message::length(&message).unwrap();
    message.resize(length, 0);
    input.read_exact(&mut message[message::START..]).unwrap();
    let body_length = u32::from_le_bytes(message[4..8].try_into().unwrap());
    let body = length - usize::try_from(body_length).unwrap();
    let mut reader = Reader::new(&message);
    reader.take(16).unwrap();
    let mut method = String::new();
    while reader.at() < body {
        reader.align(8).unwrap();
        if reader.at() >= body {
            break;
        }
        let field = reader.byte().unwrap();
        let text = match reader.signature().unwrap() {
            "g" => reader.signature().unwrap(),
            _ => reader.text().unwrap(),
        };
        if field == 3 {
            method = text.to_owned();
        }
    }
    Some(Heard {
        method,
        message,
        body,
    })
}

/// Messages that answer a call.
fn reply(serial: u32, answer: &BusAnswer) -> Vec<Vec<u8>> {
    const JOB: &str = "/org/freedesktop/systemd1/job/7";
    let mut body = Writer::default();
    let mut messages = Vec::new();
    let (kind, signature, error) = match answer {
        BusAnswer::Empty => (2, "", None),
        BusAnswer::Job(result) => {
            let mut signal = Writer::default();
            signal.number(7);
            signal.text(JOB);
            signal.text("x.scope");
            signal.text(result);
            messages.push(encode(4, 0, "uoss", None, &signal));
            body.text(JOB);
            (2, "o", None)
        }
        BusAnswer::Error(name) => {
            body.text("it was not to be");
            (3, "s", Some(*name))
        }
    };
    messages.push(encode(kind, serial, signature, error, &body));
    messages
}

fn encode(kind: u8, to: u32, signature: &str, error: Option<&str>, body: &Writer) -> Vec<u8> {
    let mut message = Writer::default();
    for byte in [b'l', kind, 1, 1] {
        message.byte(byte);
    }
    message.number(u32::try_from(body.bytes.len()).unwrap());
    message.number(99);
    message.array(8, |array| {
        let mut field = |number: u8, kind: &str, text: &str| {
            array.align(8);
            array.byte(number);
            array.signature(kind);
            if kind == "g" {
                array.signature(text);
            } else {
                array.text(text);
            }
        };
        field(7, "s", ":1.1");
        if kind == 4 {
            field(3, "s", "JobRemoved");
        }
        if let Some(error) = error {
            field(4, "s", error);
        }
        if !signature.is_empty() {
            field(8, "g", signature);
        }
        array.align(8);
        array.byte(5);
        array.signature("u");
        array.number(to);
    });
    message.align(8);
    message.bytes.extend(&body.bytes);
    message.bytes
}

/// systemd on a socket in a directory of the test.
fn socket(bus: bool) -> (tempfile::TempDir, UnixListener, Systemd) {
    let dir = tempfile::Builder::new()
        .prefix("rbt-host-")
        .tempdir()
        .unwrap();
    let socket = dir.path().join("bus");
    let listener = UnixListener::bind(&socket).unwrap();
    (dir, listener, Systemd { socket, bus })
}

fn scope(limits: &LinuxResources) -> Scope<'_> {
    Scope {
        unit: "rubelet-0123.scope",
        slice: "kubepods-pod1.slice",
        description: "container 0123",
        pids: &[4711],
        limits: Some(limits),
        layout: CgroupLayout::V2,
    }
}

fn methods(heard: &[Heard]) -> Vec<&str> {
    heard.iter().map(|call| call.method.as_str()).collect()
}

/// The properties that come next in a body.
fn properties(body: &mut Reader<'_>) -> Vec<String> {
    let length = usize::try_from(body.number().unwrap()).unwrap();
    body.align(8).unwrap();
    let end = body.at() + length;
    let mut properties = Vec::new();
    while body.at() < end {
        body.align(8).unwrap();
        let name = body.text().unwrap();
        let shown = match body.signature().unwrap() {
            "s" => body.text().unwrap().to_owned(),
            "b" => (body.number().unwrap() == 1).to_string(),
            "au" => {
                assert_eq!(body.number(), Some(4));
                body.number().unwrap().to_string()
            }
            "t" => {
                body.align(8).unwrap();
                let number = body.take(8).unwrap();
                u64::from_le_bytes(number.try_into().unwrap()).to_string()
            }
            other => panic!("{other}"),
        };
        properties.push(format!("{name}={shown}"));
    }
    properties
}

#[test]
fn a_scope_is_started_and_its_job_waited_for() {
    let (_dir, listener, systemd) = socket(true);
    let calls = stand_in(listener, 1, |method, _| match method {
        "StartTransientUnit" => BusAnswer::Job("done"),
        _ => BusAnswer::Empty,
    });
    let limits = LinuxResources {
        memory: Some(Memory {
            limit: Some(4096),
            ..Memory::default()
        }),
        ..LinuxResources::default()
    };
    systemd.start_scope(&scope(&limits)).unwrap();
    let heard = calls.join().unwrap();
    assert_eq!(
        methods(&heard),
        ["Hello", "AddMatch", "Subscribe", "StartTransientUnit"]
    );

    let start = &heard[3];
    let mut body = Reader::new(&start.message[start.body..]);
    assert_eq!(body.text(), Some("rubelet-0123.scope"));
    assert_eq!(body.text(), Some("fail"));
    let properties = properties(&mut body);
    for expected in [
        "Slice=kubepods-pod1.slice",
        "Delegate=true",
        "DefaultDependencies=false",
        "PIDs=4711",
        "MemoryMax=4096",
    ] {
        assert!(
            properties.iter().any(|one| one == expected),
            "{properties:?}"
        );
    }
    assert_eq!(body.number(), Some(0), "no auxiliary units");
}

#[test]
fn a_failed_scope_of_the_same_name_is_forgotten_first() {
    let (_dir, listener, systemd) = socket(true);
    let calls = stand_in(listener, 1, |method, earlier| match (method, earlier) {
        ("StartTransientUnit", 0) => BusAnswer::Error(UNIT_EXISTS),
        ("StartTransientUnit", _) => BusAnswer::Job("done"),
        _ => BusAnswer::Empty,
    });
    systemd
        .start_scope(&scope(&LinuxResources::default()))
        .unwrap();
    let heard = calls.join().unwrap();
    let last = &methods(&heard)[3..];
    assert_eq!(
        last,
        [
            "StartTransientUnit",
            "ResetFailedUnit",
            "StartTransientUnit"
        ]
    );
}

#[test]
fn refusals_and_failed_jobs_are_reported() {
    let (_dir, listener, systemd) = socket(true);
    let calls = stand_in(listener, 2, |method, earlier| match (method, earlier) {
        ("StartTransientUnit", 0) => BusAnswer::Error("org.freedesktop.DBus.Error.AccessDenied"),
        ("StartTransientUnit", _) => BusAnswer::Job("failed"),
        _ => BusAnswer::Empty,
    });
    let limits = LinuxResources::default();
    let refused = systemd
        .start_scope(&scope(&limits))
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("refused the start of rubelet-0123.scope: it was not to be (org."),
        "{refused}"
    );
    let failed = systemd
        .start_scope(&scope(&limits))
        .unwrap_err()
        .to_string();
    assert!(failed.contains("ended as `failed`"), "{failed}");
    calls.join().unwrap();
}

#[test]
fn a_stop_waits_and_a_unit_that_is_gone_is_no_error() {
    let (_dir, listener, systemd) = socket(true);
    let calls = stand_in(listener, 2, |method, earlier| match (method, earlier) {
        ("StopUnit", 0) => BusAnswer::Job("done"),
        ("StopUnit", _) => BusAnswer::Error(NO_SUCH_UNIT),
        _ => BusAnswer::Empty,
    });
    systemd.stop("rubelet-0123.scope").unwrap();
    systemd.stop("rubelet-0123.scope").unwrap();
    assert_eq!(calls.join().unwrap().len(), 8);
}

#[test]
fn the_private_socket_is_not_greeted_as_a_bus() {
    let (_dir, listener, systemd) = socket(false);
    let calls = stand_in(listener, 1, |_, _| BusAnswer::Empty);
    let limits = LinuxResources {
        pids: Some(rubelet_oci::Pids { limit: 5 }),
        ..LinuxResources::default()
    };
    systemd
        .set_limits("a.scope", CgroupLayout::V2, &limits)
        .unwrap();
    let nothing = LinuxResources::default();
    systemd
        .set_limits("a.scope", CgroupLayout::V2, &nothing)
        .unwrap();
    let heard = calls.join().unwrap();
    assert_eq!(methods(&heard), ["Subscribe", "SetUnitProperties"]);
    let text = String::from_utf8_lossy(&heard[1].message).into_owned();
    assert!(text.contains("TasksMax") && !text.contains("org.freedesktop.DBus"));
}

#[test]
fn systemd_is_found_by_its_sign_and_its_sockets() {
    let dir = tempfile::Builder::new()
        .prefix("rbt-host-")
        .tempdir()
        .unwrap();
    assert_eq!(Systemd::find_below(dir.path()), None);
    fs::create_dir_all(dir.path().join("run/systemd/system")).unwrap();
    let found = Systemd::find_below(dir.path()).unwrap();
    assert!(!found.bus && found.socket.ends_with("run/systemd/private"));
    fs::create_dir_all(dir.path().join("run/dbus")).unwrap();
    fs::write(dir.path().join("run/dbus/system_bus_socket"), "").unwrap();
    assert!(Systemd::find_below(dir.path()).unwrap().bus);
}

#[test]
fn nonsense_is_an_error_and_not_a_panic() {
    let (_dir, listener, systemd) = socket(false);
    let other = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut input = BufReader::new(stream.try_clone().unwrap());
        let mut output: UnixStream = stream;
        let mut line = String::new();
        input.read_line(&mut line).unwrap();
        output.write_all(b"OK x\r\n").unwrap();
        output.write_all(&[0xff; 64]).unwrap();
        // Until the other side has had enough.
        let _ = input.read_to_end(&mut Vec::new());
    });
    let error = systemd.stop("a.scope").unwrap_err().to_string();
    assert!(error.contains("cannot be read"), "{error}");
    other.join().unwrap();
    let whole = reply(5, &BusAnswer::Job("done")).concat();
    for end in 0..whole.len() {
        let _ = message::length(&whole[..end]);
        let _ = message::decode(&whole[..end]);
    }
}

/// A bus that runs for one test.
pub(crate) struct Bus {
    child: Child,
    dir: tempfile::TempDir,
}

impl Bus {
    /// Its socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.path().join("bus")
    }

    /// `None` where the program is missing.
    pub(crate) fn start() -> Option<Self> {
        let dir = tempfile::Builder::new()
            .prefix("rbt-host-")
            .tempdir()
            .unwrap();
        let config = format!(
            "<busconfig><listen>unix:path={}/bus</listen><auth>EXTERNAL</auth>\
             <policy context=\"default\"><allow send_destination=\"*\" eavesdrop=\"true\"/>\
             <allow eavesdrop=\"true\"/><allow own=\"*\"/></policy></busconfig>",
            dir.path().display()
        );
        fs::write(dir.path().join("config"), config).unwrap();
        let mut child = Command::new("dbus-daemon")
            .arg(format!("--config-file={}/config", dir.path().display()))
            .args(["--nofork", "--print-address=1"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        // It says where it is as soon as it listens.
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        Some(Self { child, dir })
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn a_real_bus_takes_every_message_and_knows_of_no_systemd() {
    let Some(bus) = Bus::start() else {
        rubelet_needs::missing("dbus-daemon");
        return;
    };
    // The bus disconnects clients that send a malformed message.
    let systemd = Systemd::on_bus(&bus.socket());
    let limits = LinuxResources {
        cpu: Some(rubelet_oci::Cpu {
            cpus: "0-9".into(),
            ..rubelet_oci::Cpu::default()
        }),
        devices: vec![rubelet_oci::DeviceRule {
            allow: true,
            kind: rubelet_oci::DeviceKind::Char,
            major: Some(1),
            minor: None,
            access: "rw".into(),
        }],
        ..LinuxResources::default()
    };
    let start = systemd.start_scope(&scope(&limits)).unwrap_err();
    let stop = systemd.stop("a.scope").unwrap_err();
    let set = systemd
        .set_limits("a.scope", CgroupLayout::V2, &limits)
        .unwrap_err();
    for error in [start, stop, set] {
        let text = error.to_string();
        assert!(
            text.contains("org.freedesktop.DBus.Error.ServiceUnknown"),
            "{text}"
        );
    }
}

/// Runs as root on a machine with systemd and cgroups of version 2, as the one of the test bed is.
#[test]
fn a_real_systemd_keeps_a_scope_with_its_limits() {
    let found = Systemd::find();
    if !rubelet_needs::applies(found.is_some(), "systemd does not run here") {
        return;
    }
    let systemd = found.unwrap();
    let cgroups = crate::CgroupFs::detect(Path::new("/sys/fs/cgroup")).unwrap();
    let name = format!("rbt-host-{}", std::process::id());
    let unit = format!("{name}.scope");
    let slice = "rubelet-tests.slice";
    let path = format!("/rubelet.slice/{slice}/{unit}");
    let path = rubelet_cgroup_plan::CgroupPath::parse(&path).unwrap();
    let memory = |limit| LinuxResources {
        memory: Some(Memory {
            limit: Some(limit),
            swap: Some(limit),
            ..Memory::default()
        }),
        cpu: Some(rubelet_oci::Cpu {
            shares: Some(512),
            quota: Some(50_000),
            period: Some(100_000),
            ..rubelet_oci::Cpu::default()
        }),
        pids: Some(rubelet_oci::Pids { limit: 33 }),
        devices: vec![rubelet_oci::DeviceRule {
            allow: true,
            kind: rubelet_oci::DeviceKind::Char,
            major: Some(1),
            minor: Some(3),
            access: "rw".into(),
        }],
        ..LinuxResources::default()
    };
    let mut holder = Command::new("sleep").arg("600").spawn().unwrap();
    let limits = memory(64 << 20);
    let pids = [holder.id()];
    let scope = Scope {
        unit: &unit,
        slice,
        description: "a test",
        pids: &pids,
        limits: Some(&limits),
        layout: cgroups.layout(),
    };
    systemd.start_scope(&scope).unwrap();
    systemd.start(slice).unwrap();
    let held = std::collections::BTreeSet::from([holder.id().cast_signed()]);
    assert_eq!(cgroups.processes(&path).unwrap(), held);
    // A second one of that name is refused as long as the first one lives.
    let twice = systemd.start_scope(&scope).unwrap_err().to_string();
    assert!(twice.contains("refused the start of"), "{twice}");

    cgroups.create(&path).unwrap();
    cgroups.apply(&path, &limits).unwrap();
    cgroups.apply_devices(&path, &limits.devices).unwrap();
    let stats = cgroups.stats(&path, StatsScope::All).unwrap();
    assert_eq!(stats.memory.unwrap().limit, Some(64 << 20));
    assert_eq!(stats.pids.unwrap().limit, Some(33));

    systemd
        .set_limits(&unit, cgroups.layout(), &memory(32 << 20))
        .unwrap();
    let reloaded = Command::new("systemctl")
        .arg("daemon-reload")
        .status()
        .unwrap();
    assert!(reloaded.success());
    let stats = cgroups.stats(&path, StatsScope::All).unwrap();
    assert_eq!(
        stats.memory.unwrap().limit,
        Some(32 << 20),
        "kept by systemd"
    );

    assert_eq!(cgroups.kill(&path).unwrap(), 1);
    holder.wait().unwrap();
    systemd.stop(&unit).unwrap();
    systemd.stop(&unit).unwrap();
    assert!(!cgroups.exists(&path));
}
