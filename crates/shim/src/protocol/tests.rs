//! Messages and frames: complete, cut, and of other programs.

use proptest::prelude::*;
use rubelet_cgroup_plan::CgroupPath;
use rubelet_oci::{IdMapping, IdMappings};

use super::*;
use crate::ExitRecord;

fn create() -> CreateContainer {
    CreateContainer {
        id: "c".into(),
        bundle: "/run/b".into(),
        runtime: RuntimeChoice::External(ExternalRuntime {
            binary: "/usr/sbin/runc".into(),
            root: "/run/runc".into(),
            systemd_cgroup: true,
        }),
        rootfs: Rootfs::Overlay {
            lower: vec!["/l1".into(), "/l2".into()],
            upper: Some("/u".into()),
            work: Some("/w".into()),
        },
        cgroup: CgroupPath::parse("/kubepods/c").unwrap(),
        log_path: Some("/log".into()),
        stdin: true,
        stdin_once: true,
        tty: true,
        has_seccomp: true,
        max_log_bytes: 1 << 20,
        pid_target: None,
        max_log_line: 100,
    }
}

fn from_agent_all() -> Vec<FromAgent> {
    let id = || "c".to_owned();
    let calls = [
        Call::MakeSandbox(Box::new(SandboxSetup {
            id: "s".into(),
            namespaces: vec![rubelet_oci::NamespaceKind::Network],
            user: Some(IdMappings::default()),
            cgroup: Some(CgroupPath::parse("/pod").unwrap()),
            ..SandboxSetup::default()
        })),
        Call::Create(Box::new(create())),
        Call::Start { id: id() },
        Call::Signal {
            id: id(),
            signal: 15,
            target: SignalTarget::Exec("x".into()),
        },
        Call::Exec(Box::new(StartExec {
            id: id(),
            exec_id: "x".into(),
            process: rubelet_oci::Process::default(),
            streams: StreamFds {
                stdin: true,
                stdout: false,
                stderr: true,
            },
        })),
        Call::ReopenLog { id: id() },
        Call::Resize {
            id: id(),
            width: 80,
            height: 24,
        },
        Call::FeedStdin { id: id() },
        Call::Attach {
            id: id(),
            attach_id: "a".into(),
            streams: StreamFds {
                stdout: true,
                ..StreamFds::default()
            },
        },
        Call::CloseStdin { id: id() },
        Call::Delete { id: id() },
        Call::State,
        Call::Shutdown,
    ];
    let requests = calls
        .into_iter()
        .zip(1..)
        .map(|(call, id)| FromAgent::Request(Request { id, call }));
    requests
        .chain([
            FromAgent::Hello(Hello {
                version: 1,
                subscribe: true,
                pid: 3,
            }),
            FromAgent::Ack { upto: 4 },
        ])
        .collect()
}

fn from_shim_all() -> Vec<FromShim> {
    let reply = |outcome| FromShim::Reply { id: 7, outcome };
    let event = |event| FromShim::Event { sequence: 3, event };
    vec![
        FromShim::Hello(Hello::default()),
        reply(CallResult::Answer(ShimReply::Done)),
        reply(CallResult::Answer(ShimReply::Created { pid: 4 })),
        reply(CallResult::Answer(ShimReply::State(Box::new(ShimState {
            containers: vec![ContainerState {
                id: "c".into(),
                phase: ContainerPhase::Running,
                cgroup: Some(CgroupPath::parse("/pod/c").unwrap()),
                pid: 4,
                created_at_ns: 1,
                started_at_ns: 2,
                exit: Some(ExitRecord::default()),
                execs: [("x".to_owned(), 5)].into(),
                log: LogState::default(),
            }],
            sandbox: Some(SandboxState::default()),
            ..ShimState::default()
        })))),
        reply(CallResult::Failure(CallFailure::new(
            FailureKind::NotFound,
            "no",
        ))),
        event(Event::Exited {
            container: "c".into(),
            exit: ExitRecord {
                exit_code: 137,
                signal: Some(9),
                at_ns: 5,
                started_at_ns: 4,
                oom_killed: true,
            },
        }),
        event(Event::PauseExited { at_ns: 6 }),
        event(Event::Warning {
            message: "hm".into(),
        }),
        FromShim::Goodbye {
            reason: "bye".into(),
        },
    ]
}

fn body<T: Serialize>(message: &T) -> Vec<u8> {
    let mut decoder = Decoder::new();
    decoder.push(&encode(message, 2).unwrap());
    let frame = decoder.next_frame().unwrap().unwrap();
    assert_eq!(frame.fds, 2);
    assert_eq!(decoder.next_frame(), Ok(None));
    frame.body
}

#[test]
fn every_message_arrives_as_it_was_sent() {
    for message in from_agent_all() {
        let read = from_agent(&body(&message)).unwrap();
        assert_eq!(read, DecodedMessage::Message(message));
    }
    for message in from_shim_all() {
        assert_eq!(from_shim(&body(&message)).unwrap(), Some(message));
    }
}

#[test]
fn the_least_that_an_older_agent_sends_is_enough() {
    let text = br#"{"request":{"id":1,"call":{"create":{"id":"c","bundle":"/b","cgroup":"/a"}}}}"#;
    let DecodedMessage::Message(FromAgent::Request(request)) = from_agent(text).unwrap() else {
        panic!();
    };
    let Call::Create(what) = request.call else {
        panic!();
    };
    assert_eq!(what.runtime, RuntimeChoice::Embedded);
    assert_eq!(what.rootfs, Rootfs::Ready);
    assert_eq!(what.max_log_line, 16 << 10);
}

#[test]
fn a_root_cgroup_is_refused() {
    let text = br#"{"request":{"id":1,"call":{"create":{"id":"c","bundle":"/b","cgroup":"/"}}}}"#;
    let read = from_agent(text).unwrap();
    assert!(matches!(read, DecodedMessage::UnknownCall { id: 1, why } if why.contains("root")));
}

#[test]
fn messages_of_a_newer_shim_are_skipped_or_acknowledged() {
    let skipped = from_shim(br#"{"song":{"title":"x"}}"#).unwrap();
    assert_eq!(skipped, None);
    let event = from_shim(br#"{"event":{"sequence":8,"event":{"party":{}}}}"#).unwrap();
    assert_eq!(
        event,
        Some(FromShim::Event {
            sequence: 8,
            event: Event::Unknown
        })
    );
    let reply = from_shim(br#"{"reply":{"id":8,"failure":{"kind":"tired","message":"no"}}}"#);
    let Some(FromShim::Reply {
        outcome: CallResult::Failure(failure),
        ..
    }) = reply.unwrap()
    else {
        panic!();
    };
    assert_eq!(failure.kind, FailureKind::Internal);
    let reply = from_shim(br#"{"reply":{"id":8,"answer":{"poem":{}}}}"#).unwrap();
    assert!(matches!(reply, Some(FromShim::Reply { id: 8, .. })));
    assert!(from_shim(b"[]").is_err());
}

#[test]
fn the_message_of_a_user_namespace_keeps_its_form() {
    let text = concat!(
        r#"{"request":{"id":1,"call":{"make_sandbox":{"id":"s","user":"#,
        r#"{"uids":[{"containerID":0,"hostID":65536,"size":65536}],"#,
        r#""gids":[{"containerID":0,"hostID":131072,"size":65536}]}}}}}"#
    );
    let message = from_agent(text.as_bytes()).unwrap();
    let DecodedMessage::Message(FromAgent::Request(Request {
        call: Call::MakeSandbox(setup),
        ..
    })) = message
    else {
        panic!("{message:?}");
    };
    let range = |host_id| {
        vec![IdMapping {
            container_id: 0,
            host_id,
            size: 65536,
        }]
    };
    let mappings = IdMappings {
        uids: range(65536),
        gids: range(131_072),
    };
    assert_eq!(setup.user.as_ref(), Some(&mappings));
    let written = serde_json::to_string(&setup.user).unwrap();
    assert!(text.contains(&written), "{written}");
}

#[test]
fn oversized_messages_are_refused_by_the_sender() {
    assert_eq!(encode(&1, 4), Err(DecodeError::TooManyFds(4)));
    let long = "x".repeat(MAX_FRAME);
    assert_eq!(encode(&long, 0), Err(DecodeError::TooLong(MAX_FRAME + 2)));
}

proptest! {
    #[test]
    fn frames_may_arrive_in_any_portions(sizes in prop::collection::vec(1usize..40, 1..60)) {
        let messages = from_agent_all();
        let bytes: Vec<u8> = messages.iter().flat_map(|one| encode(one, 0).unwrap()).collect();
        let mut decoder = Decoder::new();
        let mut read = Vec::new();
        let mut rest = &bytes[..];
        for size in sizes.into_iter().chain([bytes.len()]) {
            let (portion, later) = rest.split_at(size.min(rest.len()));
            rest = later;
            decoder.push(portion);
            while let Some(frame) = decoder.next_frame().unwrap() {
                read.push(from_agent(&frame.body).unwrap());
            }
        }
        let expected: Vec<_> = messages.into_iter().map(DecodedMessage::Message).collect();
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn any_bytes_are_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut decoder = Decoder::new();
        decoder.push(&bytes);
        let _ = decoder.next_frame();
        let _ = from_agent(&bytes);
        let _ = from_shim(&bytes);
    }
}
