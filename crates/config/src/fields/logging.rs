//! The agent's log, and where its traces are sent.

use crate::Quantity;
use crate::field::{FieldType, Kind, section};
use crate::go_duration;
use serde::{Deserialize, Serialize};
use std::time::Duration;

section! {
    /// The agent's log.
    pub struct Logging {
        /// `text` or `json`.
        format: String = "text".to_owned(), "format", Unset, Works;
        /// Maximum time between two flushes of the log. A number means nanoseconds.
        #[serde(with = "go_duration::or_nanoseconds")]
        flush_frequency: Duration = Duration::from_secs(5), "flushFrequency", Unset, Differs("each line of the log is written immediately");
        /// Verbosity of the log, from 0.
        verbosity: u32 = 0, "verbosity", Unset, Works;
        /// Verbosity of single source files, where it is more than `verbosity`; for the text format
        /// only. The files are Rubelet's: each line of the log names its own.
        vmodule: Vec<VModuleItem> = Vec::new(), "vmodule", Counts, Works;
        /// Options of the formats.
        options: FormatOptions = FormatOptions::default(), "options", Unset, Works;
    }
}

/// Verbosity of the source files that match a pattern.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VModuleItem {
    /// Name of a source file without `.rs`, with `*` and `?`; with a slash, the end of its path.
    pub file_pattern: String,
    /// Verbosity there, from 0.
    pub verbosity: u32,
}

impl FieldType for Vec<VModuleItem> {
    const KIND: Kind = Kind::ObjectList(&["filePattern", "verbosity"]);
}

section! {
    /// Options of the log formats.
    pub struct FormatOptions {
        /// Of the text format.
        text: OutputRouting = OutputRouting::default(), "text", Unset, Works;
        /// Of the JSON format.
        json: OutputRouting = OutputRouting::default(), "json", Unset, Works;
    }
}

section! {
    /// Where the lines of one format are written.
    pub struct OutputRouting {
        /// Whether errors are written to stderr and everything else to stdout. Needs the feature
        /// gate LoggingAlphaOptions.
        split_stream: bool = false, "splitStream", Unset, Works;
        /// Size of the buffer for lines that are not errors. Needs the feature gate
        /// LoggingAlphaOptions.
        info_buffer_size: Quantity = Quantity("0".to_owned()), "infoBufferSize", Unset, Differs("each line of the log is written immediately");
    }
}

section! {
    /// Where OpenTelemetry spans are sent.
    pub struct Tracing {
        /// Address of the collector.
        endpoint: Option<String> = None, "endpoint", Counts, NotYet;
        /// How many of a million spans are sampled.
        sampling_rate_per_million: Option<i32> = None, "samplingRatePerMillion", Counts, NotYet;
    }
}
