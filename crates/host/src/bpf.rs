//! The few `bpf(2)` calls that are needed, as in the kernel's `linux/bpf.h`.

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
};

/// One instruction of eight bytes, as the kernel's `struct bpf_insn`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Instruction {
    pub(crate) code: u8,
    /// Target in one half of the byte, source in the other.
    pub(crate) registers: u8,
    pub(crate) offset: i16,
    pub(crate) immediate: i32,
}

/// Commands.
const PROG_LOAD: libc::c_int = 5;
const PROG_ATTACH: libc::c_int = 8;
const PROG_DETACH: libc::c_int = 9;
const PROG_GET_FD_BY_ID: libc::c_int = 13;
const OBJ_GET_INFO_BY_FD: libc::c_int = 15;
const PROG_QUERY: libc::c_int = 16;

/// `BPF_PROG_TYPE_CGROUP_DEVICE`.
const TYPE_CGROUP_DEVICE: u32 = 15;
/// `BPF_CGROUP_DEVICE`.
const ATTACH_DEVICE: u32 = 6;
/// `BPF_F_ALLOW_MULTI`: programs of this cgroup and of its ancestors all run.
const ALLOW_MULTI: u32 = 2;
/// The kernel allows no more programs in one place.
const MOST_PROGRAMS: usize = 64;

/// Name of our programs, which distinguishes them from others.
pub(crate) const NAME: [u8; 16] = *b"rubelet_devices\0";

#[repr(C)]
#[derive(Default)]
struct Load {
    kind: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    attach_type: u32,
}

#[repr(C)]
#[derive(Default)]
struct Attach {
    target: u32,
    program: u32,
    attach_type: u32,
    flags: u32,
    replaced: u32,
}

#[repr(C)]
#[derive(Default)]
struct Query {
    target: u32,
    attach_type: u32,
    flags: u32,
    attach_flags: u32,
    ids: u64,
    count: u32,
    padding: u32,
    program_flags: u64,
    links: u64,
    link_flags: u64,
    /// The kernel writes it for the programs of an interface, whatever size it is given.
    revision: u64,
}

#[repr(C)]
#[derive(Default)]
struct ById {
    id: u32,
    next: u32,
    flags: u32,
}

#[repr(C)]
#[derive(Default)]
struct GetInfo {
    program: u32,
    length: u32,
    info: u64,
}

/// The start of `struct bpf_prog_info`.
#[repr(C)]
#[derive(Default)]
struct ProgramInfo {
    before: [u64; 8],
    name: [u8; 16],
}

/// Loads a program for the devices of a cgroup.
pub(crate) fn load(program: &[Instruction]) -> io::Result<OwnedFd> {
    load_as(TYPE_CGROUP_DEVICE, ATTACH_DEVICE, program)
}

/// Loads a program of a type, for a place to attach it to.
pub(crate) fn load_as(kind: u32, attach_type: u32, program: &[Instruction]) -> io::Result<OwnedFd> {
    // The programs call no kernel helpers, some of which need a certain license.
    let license = c"Apache-2.0";
    let mut request = Load {
        kind,
        instruction_count: u32::try_from(program.len()).map_err(io::Error::other)?,
        instructions: program.as_ptr() as u64,
        license: license.as_ptr() as u64,
        name: NAME,
        attach_type,
        ..Load::default()
    };
    let fd = bpf(PROG_LOAD, &mut request)?;
    Ok(own(fd))
}

/// Attaches a program to an open cgroup, in addition to existing ones.
pub(crate) fn attach(cgroup: BorrowedFd<'_>, program: BorrowedFd<'_>) -> io::Result<()> {
    let mut request = Attach {
        target: number(cgroup),
        program: number(program),
        attach_type: ATTACH_DEVICE,
        flags: ALLOW_MULTI,
        ..Attach::default()
    };
    bpf(PROG_ATTACH, &mut request)?;
    Ok(())
}

/// Attaches a program to an interface in the network namespace of this thread.
#[cfg(test)]
pub(crate) fn attach_to_link(
    link: u32,
    attach_type: u32,
    program: BorrowedFd<'_>,
) -> io::Result<()> {
    let mut request = Attach {
        target: link,
        program: number(program),
        attach_type,
        ..Attach::default()
    };
    bpf(PROG_ATTACH, &mut request)?;
    Ok(())
}

/// Detaches a program from a cgroup.
pub(crate) fn detach(cgroup: BorrowedFd<'_>, program: BorrowedFd<'_>) -> io::Result<()> {
    let mut request = Attach {
        target: number(cgroup),
        program: number(program),
        attach_type: ATTACH_DEVICE,
        ..Attach::default()
    };
    bpf(PROG_DETACH, &mut request)?;
    Ok(())
}

/// Ids of the programs that are attached to this very cgroup.
pub(crate) fn attached(cgroup: BorrowedFd<'_>) -> io::Result<Vec<u32>> {
    query(number(cgroup), ATTACH_DEVICE)
}

/// Ids of the programs of an interface in the network namespace of this thread.
pub(crate) fn attached_to_link(link: u32, attach_type: u32) -> io::Result<Vec<u32>> {
    query(link, attach_type)
}

fn query(target: u32, attach_type: u32) -> io::Result<Vec<u32>> {
    let mut ids = vec![0_u32; MOST_PROGRAMS];
    let mut request = Query {
        target,
        attach_type,
        ids: ids.as_mut_ptr() as u64,
        count: u32::try_from(ids.len()).map_err(io::Error::other)?,
        ..Query::default()
    };
    bpf(PROG_QUERY, &mut request)?;
    ids.truncate(usize::try_from(request.count).map_err(io::Error::other)?);
    Ok(ids)
}

/// Opens a program by its id.
pub(crate) fn open(id: u32) -> io::Result<OwnedFd> {
    let mut request = ById {
        id,
        ..ById::default()
    };
    let fd = bpf(PROG_GET_FD_BY_ID, &mut request)?;
    Ok(own(fd))
}

/// Name of a program.
pub(crate) fn name(program: BorrowedFd<'_>) -> io::Result<[u8; 16]> {
    let mut info = ProgramInfo::default();
    let mut request = GetInfo {
        program: number(program),
        length: u32::try_from(size_of::<ProgramInfo>()).map_err(io::Error::other)?,
        info: &raw mut info as u64,
    };
    bpf(OBJ_GET_INFO_BY_FD, &mut request)?;
    Ok(info.name)
}

fn number(fd: BorrowedFd<'_>) -> u32 {
    fd.as_raw_fd().cast_unsigned()
}

fn bpf<T>(command: libc::c_int, request: &mut T) -> io::Result<RawFd> {
    // SAFETY: each request is a `repr(C)` prefix of the kernel's `union bpf_attr`, passed with its
    // size; the kernel takes what is behind it as zero. The addresses within point to buffers that
    // the callers keep alive, and whose lengths they give beside.
    #[allow(unsafe_code)]
    let answer =
        unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut *request, size_of::<T>()) };
    match RawFd::try_from(answer) {
        Ok(answer) if answer >= 0 => Ok(answer),
        _ => Err(io::Error::last_os_error()),
    }
}

fn own(fd: RawFd) -> OwnedFd {
    // SAFETY: the kernel has just made this descriptor (close-on-exec, as all of bpf) for us.
    #[allow(unsafe_code)]
    unsafe {
        OwnedFd::from_raw_fd(fd)
    }
}
