//! Runs a private containerd for manual tests: prints how to run an agent with it and removes
//! everything on Enter or at the end of stdin.

use rubelet_testbed::Containerd;

#[expect(clippy::print_stdout, reason = "a program for people")]
fn main() -> anyhow::Result<()> {
    let containerd = Containerd::start()?;
    let directory = containerd.scratch().dir();
    println!("endpoint: {}", containerd.endpoint());
    println!("images:   {}", rubelet_testbed::images::BUSYBOX_IMAGE);
    println!("directory:   {} (removed at the end)", directory.display());
    println!("Press Enter to stop.");
    std::io::stdin().read_line(&mut String::new())?;
    containerd.remove()
}
