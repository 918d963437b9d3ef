//! Keeps a private containerd for trying things by hand: prints how to run an agent against it and
//! removes everything on Enter or at the end of its input.

use rubelet_testbed::Containerd;

#[expect(clippy::print_stdout, reason = "a program for people")]
fn main() -> anyhow::Result<()> {
    let containerd = Containerd::start()?;
    let folder = containerd.scratch().dir();
    println!("endpoint: {}", containerd.endpoint());
    println!("images:   {}", rubelet_testbed::images::BUSYBOX_IMAGE);
    println!("folder:   {} (removed at the end)", folder.display());
    println!("Press Enter to stop.");
    std::io::stdin().read_line(&mut String::new())?;
    containerd.remove()
}
