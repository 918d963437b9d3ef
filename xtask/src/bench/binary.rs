//! The size of the program.

use anyhow::{Context, Result};

use super::report::Results;
use super::{Request, mib};

/// Measures `binary_mib`.
pub(super) fn measure(request: &Request<'_>, results: &mut Results) -> Result<()> {
    let program = &request.program;
    let size = std::fs::metadata(program)
        .with_context(|| format!("cannot read the size of {}", program.display()))?
        .len();
    results.add("binary_mib", mib(size));
    Ok(())
}
