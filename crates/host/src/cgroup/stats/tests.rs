//! Numbers from fake trees of both versions, and from the kernel.

use crate::cgroup::tests::{path, put, real, temp, v1, v2};

use super::*;

const VERSION_2: [(&str, &str); 18] = [
    ("a/cgroup.controllers", "cpu memory pids hugetlb io\n"),
    (
        "a/cpu.stat",
        "usage_usec 7\nuser_usec 4\nsystem_usec 3\nnr_periods 9\nnr_throttled 2\nthrottled_usec 5\n",
    ),
    (
        "a/cpu.pressure",
        "some avg10=1.00 avg60=0.00 avg300=0.00 total=3\n",
    ),
    ("a/memory.current", "1000\n"),
    ("a/memory.max", "4000\n"),
    ("a/memory.peak", "1200\n"),
    (
        "a/memory.stat",
        "anon 300\nfile 600\nkernel 50\nfile_mapped 20\ninactive_file 400\npgfault 11\npgmajfault 2\n",
    ),
    (
        "a/memory.events",
        "low 0\nhigh 0\nmax 8\noom 1\noom_kill 3\n",
    ),
    ("a/memory.swap.current", "70\n"),
    ("a/memory.swap.max", "max\n"),
    ("a/pids.current", "5\n"),
    ("a/pids.max", "max\n"),
    ("a/hugetlb.2MB.current", "2097152\n"),
    ("a/hugetlb.2MB.max", "max\n"),
    ("a/hugetlb.2MB.rsvd.max", "max\n"),
    ("a/hugetlb.2MB.rsvd.current", "4194304\n"),
    ("a/hugetlb.2MB.events", "max 6\n"),
    (
        "a/io.stat",
        "8:16 rbytes=10 wbytes=20 rios=1 wios=2 dbytes=0 dios=0\n",
    ),
];

#[test]
fn version_2_is_read() {
    let root = temp();
    put(root.path(), &VERSION_2);
    let fs = v2(root.path());
    let stats = fs.stats(&path("/a"), StatsScope::All).unwrap();
    let cpu = stats.cpu.unwrap();
    assert_eq!(
        (cpu.usage_ns, cpu.user_ns, cpu.system_ns),
        (7000, 4000, 3000)
    );
    assert_eq!(
        (cpu.periods, cpu.throttled_periods, cpu.throttled_ns),
        (9, 2, 5000)
    );
    let memory = stats.memory.unwrap();
    assert_eq!(
        memory,
        MemoryStats {
            usage: 1000,
            working_set: 600,
            limit: Some(4000),
            rss: 300,
            cache: 600,
            mapped_file: 20,
            max_usage: Some(1200),
            kernel: 50,
            page_faults: 11,
            major_page_faults: 2,
            limit_hits: 8,
            oom_kills: 3,
        }
    );
    assert_eq!(memory.available(), Some(3400));
    let swap = SwapStats {
        usage: 70,
        limit: None,
    };
    assert_eq!(stats.swap, Some(swap));
    let pids = PidsStats {
        current: 5,
        limit: None,
    };
    assert_eq!(stats.pids, Some(pids));
    let pages = HugetlbStats {
        page_size: "2MB".into(),
        usage: 2 << 20,
        reserved: Some(4 << 20),
        limit_hits: 6,
    };
    assert_eq!(stats.hugetlb, [pages]);
    let disk = IoStats {
        major: 8,
        minor: 16,
        read_bytes: 10,
        write_bytes: 20,
        reads: 1,
        writes: 2,
    };
    assert_eq!(stats.io, [disk]);
    assert!(stats.psi.cpu.is_some_and(|cpu| cpu.some.total_ns == 3000));
    assert_eq!(stats.psi.memory, None);
    assert_eq!(fs.oom_kills(&path("/a")).unwrap(), 3);
    assert!(
        fs.stats(&path("/b"), StatsScope::All)
            .unwrap_err()
            .is_gone()
    );
}

#[test]
fn usage_needs_few_files() {
    let root = temp();
    let counters = [
        "memory.events",
        "memory.peak",
        "pids.max",
        "io.stat",
        "hugetlb",
        "cgroup.controllers",
    ];
    let needed = |file: &(&str, &str)| !counters.iter().any(|name| file.0.contains(name));
    put(root.path(), &VERSION_2);
    let fs = v2(root.path());
    let all = fs.stats(&path("/a"), StatsScope::All).unwrap();
    let root = temp();
    put(
        root.path(),
        &VERSION_2.into_iter().filter(needed).collect::<Vec<_>>(),
    );
    let fs = v2(root.path());
    assert!(
        fs.stats(&path("/a"), StatsScope::All).is_err(),
        "it reads the others, too"
    );
    let usage = fs.stats(&path("/a"), StatsScope::UsageAndPids).unwrap();
    let of = |stats: &CgroupStats| {
        let memory = stats.memory.unwrap();
        let pids = stats.pids.map(|pids| pids.current);
        let memory = (
            memory.usage,
            memory.working_set,
            memory.rss,
            memory.limit,
            memory.page_faults,
        );
        (stats.cpu, memory, stats.swap, pids, stats.psi)
    };
    assert_eq!(of(&usage), of(&all));

    let root = temp();
    put(
        root.path(),
        &[
            ("cpu/a/cpuacct.usage", "70000\n"),
            ("cpu/a/memory.usage_in_bytes", "1000\n"),
            ("cpu/a/memory.limit_in_bytes", "5000\n"),
            (
                "cpu/a/memory.stat",
                "hierarchical_memory_limit 5000\nhierarchical_memsw_limit 9223372036854771712\n\
                 total_inactive_file 400\ntotal_swap 60\n",
            ),
            ("cpu/a/pids.current", "3\n"),
            ("cpu/b/cpuacct.usage", "1\n"),
            ("cpu/b/memory.usage_in_bytes", "1000\n"),
            (
                "cpu/b/memory.stat",
                "hierarchical_memory_limit 9223372036854771712\ntotal_inactive_file 400\n",
            ),
        ],
    );
    let fs = v1(
        root.path(),
        &[("cpu", "cpuacct"), ("cpu", "memory"), ("cpu", "pids")],
    );
    assert!(fs.stats(&path("/a"), StatsScope::All).is_err());
    let usage = fs.stats(&path("/a"), StatsScope::UsageAndPids).unwrap();
    assert_eq!(usage.cpu.unwrap().usage_ns, 70_000);
    assert_eq!(usage.memory.unwrap().available(), Some(4400));
    assert_eq!(usage.pids.unwrap().current, 3);
    let swap = SwapStats {
        usage: 60,
        limit: None,
    };
    assert_eq!(usage.swap, Some(swap));
    let usage = fs.stats(&path("/b"), StatsScope::Usage).unwrap();
    let memory = usage.memory.unwrap();
    assert_eq!((memory.working_set, memory.limit), (600, None));
    assert_eq!((usage.swap, usage.pids), (None, None));
}

#[test]
fn version_1_is_read_from_the_directories_that_are_mounted() {
    let root = temp();
    put(
        root.path(),
        &[
            (
                "cpu/a/cpu.stat",
                "nr_periods 9\nnr_throttled 2\nthrottled_time 5\n",
            ),
            ("acct/a/cpuacct.usage", "70000\n"),
            ("acct/a/cpuacct.stat", "user 2\nsystem 1\n"),
            ("memory/a/memory.usage_in_bytes", "1000\n"),
            ("memory/a/memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory/a/memory.memsw.limit_in_bytes", "5000\n"),
            (
                "memory/a/memory.stat",
                "rss 1\nhierarchical_memory_limit 4000\nhierarchical_memsw_limit 4500\ntotal_rss 300\n\
                 total_inactive_file 400\ntotal_swap 500\n",
            ),
            (
                "memory/a/memory.oom_control",
                "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
            ),
            ("memory/a/b/memory.oom_control", "oom_kill 2\n"),
            (
                "blkio/a/blkio.throttle.io_service_bytes_recursive",
                "8:0 Read 3\n8:0 Write 4\nTotal 7\n",
            ),
            (
                "blkio/a/blkio.throttle.io_serviced_recursive",
                "8:0 Read 1\n8:16 Write 2\n",
            ),
        ],
    );
    let mounts = [
        ("cpu", "cpu"),
        ("acct", "cpuacct"),
        ("memory", "memory"),
        ("blkio", "blkio"),
    ];
    let fs = v1(root.path(), &mounts);
    let stats = fs.stats(&path("/a"), StatsScope::All).unwrap();
    let cpu = stats.cpu.unwrap();
    assert_eq!(
        (cpu.usage_ns, cpu.user_ns, cpu.throttled_ns),
        (70_000, 20_000_000, 5)
    );
    let memory = stats.memory.unwrap();
    assert_eq!(
        (memory.working_set, memory.rss, memory.limit),
        (600, 300, None)
    );
    let swap = SwapStats {
        usage: 500,
        limit: Some(5000),
    };
    assert_eq!(stats.swap, Some(swap));
    assert_eq!((stats.pids, stats.psi), (None, PsiStats::default()));
    let totals: Vec<_> = stats
        .io
        .iter()
        .map(|io| (io.minor, io.read_bytes, io.writes))
        .collect();
    assert_eq!(totals, [(0, 3, 0), (16, 0, 2)]);
    assert_eq!(
        fs.oom_kills(&path("/a")).unwrap(),
        3,
        "those within count, too"
    );
}

#[test]
fn a_real_cgroup_can_be_measured() {
    let Some((cgroups, top)) = real("stats") else {
        return;
    };
    let stats = cgroups.stats(&top, StatsScope::All).unwrap();
    assert!(stats.cpu.is_some() && stats.memory.is_some());
    assert_eq!(stats.pids.unwrap().current, 0);
    let has_pressure = std::path::Path::new("/proc/pressure/memory").exists();
    let is_v2 = cgroups.layout() == CgroupLayout::V2;
    assert_eq!(stats.psi.memory.is_some(), has_pressure && is_v2);
    assert_eq!(cgroups.oom_kills(&top).unwrap(), 0);
    cgroups.remove(&top).unwrap();
    assert!(cgroups.stats(&top, StatsScope::All).unwrap_err().is_gone());
}

#[test]
fn only_the_root_of_version_1_has_numbers_of_the_whole_machine() {
    let root = temp();
    put(
        root.path(),
        &[
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory/memory.usage_in_bytes", "1000\n"),
            ("memory/memory.stat", "total_inactive_file 400\n"),
        ],
    );
    let mounted = v1(root.path(), &[("memory", "memory")]);
    let found = mounted.root_memory().unwrap();
    assert_eq!((found.working_set, found.limit), (600, None));
    assert_eq!(v2(root.path()).root_memory(), None);
}

#[test]
fn a_cgroup_is_found_whatever_was_read_before() {
    let (root_1, root_2) = (temp(), temp());
    // Pods of several classes in turn, and more places than are kept.
    let names = [
        "a",
        "a/c",
        "ab",
        "a/cd",
        "b/c",
        "k/b/p1",
        "k/b/p1/c",
        "k/p2",
        "k/p2/c",
        "k/b/p3",
        "k/b/p3/c",
        "k/u/p4",
        "k/u/p4/c",
        "k/b/p5/c",
        "x/y",
        "y/z/x/w/v",
        "z/x",
        "k/b/p5",
        "k",
    ];
    let numbers: Vec<_> = (1..).zip(names).collect();
    for &(number, name) in &numbers {
        let usage = format!("{name}/cpuacct.usage");
        let (stat, controllers) = (
            format!("{name}/cpu.stat"),
            format!("{name}/cgroup.controllers"),
        );
        let periods = format!("nr_periods {number}\n");
        let both = format!("usage_usec {number}\n{periods}");
        put(
            &root_1.path().join("cpu"),
            &[(&usage, &format!("{number}000")), (&stat, &periods)],
        );
        put(root_2.path(), &[(&controllers, "cpu"), (&stat, &both)]);
    }
    for fs in [
        v1(root_1.path(), &[("cpu", "cpu,cpuacct")]),
        v2(root_2.path()),
    ] {
        let mut reader = fs.stats_reader();
        for &(number, name) in &numbers {
            let path = path(&format!("/{name}"));
            let cpu = reader
                .read(&path, StatsScope::Counters)
                .unwrap()
                .cpu
                .unwrap();
            assert_eq!(
                (cpu.usage_ns, cpu.periods),
                (number * 1000, number),
                "{path}"
            );
        }
    }
}
