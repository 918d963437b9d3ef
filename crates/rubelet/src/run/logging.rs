//! Log lines in klog's text and JSON formats, compatible with the kubelet's log.

mod verbosity;

use std::{fmt, fmt::Write as _, io};

use jiff::{Timestamp, tz::TimeZone};
use rubelet_config::Logging;
use serde_json::{Map, Value};
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    Layer as _,
    filter::FilterFn,
    fmt::{
        FmtContext, FormatEvent, FormatFields,
        format::Writer,
        writer::{BoxMakeWriter, MakeWriter, MakeWriterExt as _},
    },
    layer::SubscriberExt as _,
    registry::LookupSpan,
    util::SubscriberInitExt as _,
};

use self::verbosity::Verbosity;

/// The format of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `I1121 08:18:31.123456 12 pleg.rs:10] "Message" key="value"`.
    Text,
    /// One JSON object.
    Json,
}

impl Form {
    /// The format that `logging.format` names.
    fn of(format: &str) -> Self {
        match format {
            "json" => Self::Json,
            _ => Self::Text,
        }
    }
}

/// Starts the log. Verbosity 4 adds details of decisions, 6 all of Rubelet's own lines, 8 those of the
/// libraries. Warnings and errors of libraries are always shown. Lines go to stderr, unless
/// `splitStream` sends all but errors to stdout.
pub(super) fn start(settings: &Logging) {
    // Only fails if a subscriber is set already, which then gets the lines.
    let _ = subscriber(settings, io::stdout, io::stderr).try_init();
}

/// What writes the lines to these outputs.
fn subscriber<O, E>(settings: &Logging, stdout: O, stderr: E) -> impl Subscriber + Send + Sync
where
    O: for<'a> MakeWriter<'a> + Send + Sync + 'static,
    E: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let form = Form::of(&settings.format);
    let files = settings.vmodule.iter();
    let files = files.map(|item| (item.file_pattern.clone(), item.verbosity));
    let verbosity = Verbosity::new(settings.verbosity, files);
    let most = verbosity.most();
    let filter = FilterFn::new(move |line| verbosity.shows(line)).with_max_level_hint(most);
    // The kubelet's text format sends warnings to stderr as well; its JSON format has none.
    let (routing, to_stderr) = match form {
        Form::Text => (&settings.options.text, Level::WARN),
        Form::Json => (&settings.options.json, Level::ERROR),
    };
    let output = match routing.split_stream {
        true => BoxMakeWriter::new(stderr.with_max_level(to_stderr).or_else(stdout)),
        false => BoxMakeWriter::new(stderr),
    };
    let lines = tracing_subscriber::fmt::layer()
        .event_format(Lines(form))
        .with_writer(output)
        .with_filter(filter);
    tracing_subscriber::registry().with(lines)
}

struct Lines(Form);

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let meta = event.metadata();
        let mut fields = Fields::default();
        event.record(&mut fields);
        let file = meta
            .file()
            .and_then(|path| path.rsplit('/').next())
            .unwrap_or("?");
        let caller = format!("{file}:{}", meta.line().unwrap_or_default());
        let now = now();
        match self.0 {
            Form::Text => {
                let letter = match *meta.level() {
                    Level::ERROR => 'E',
                    Level::WARN => 'W',
                    _ => 'I',
                };
                let time = now
                    .to_zoned(TimeZone::UTC)
                    .strftime("%m%d %H:%M:%S%.6f")
                    .to_string();
                let pid = std::process::id();
                write!(
                    writer,
                    "{letter}{time} {pid:>7} {caller}] {:?}",
                    fields.message
                )?;
                for (key, value) in &fields.rest {
                    match value {
                        Value::String(text) => write!(writer, " {key}={text:?}")?,
                        other => write!(writer, " {key}={other}")?,
                    }
                }
                writeln!(writer)
            }
            Form::Json => {
                let mut line = Map::new();
                let millis = now.as_microsecond() as f64 / 1000.0;
                line.insert("ts".to_owned(), millis.into());
                line.insert("caller".to_owned(), caller.into());
                line.insert("msg".to_owned(), fields.message.into());
                if *meta.level() > Level::WARN {
                    line.insert("v".to_owned(), verbosity_of(*meta.level()).into());
                } else if *meta.level() == Level::ERROR {
                    line.insert("err".to_owned(), Value::Null);
                }
                line.extend(fields.rest);
                writeln!(writer, "{}", Value::Object(line))
            }
        }
    }
}

fn verbosity_of(level: Level) -> u32 {
    match level {
        Level::DEBUG => 4,
        Level::TRACE => 6,
        _ => 0,
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a log line says when it was written"
)]
fn now() -> Timestamp {
    Timestamp::now()
}

#[derive(Default)]
struct Fields {
    message: String,
    rest: Vec<(String, Value)>,
}

impl Fields {
    fn put(&mut self, field: &Field, value: Value) {
        if field.name() == "message" {
            if let Value::String(text) = value {
                self.message = text;
            }
        } else {
            self.rest.push((field.name().to_owned(), value));
        }
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = write!(text, "{value:?}");
        self.put(field, text.into());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Keeps what is written.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What a log with these settings writes to stdout and to stderr of a line of each level.
    fn written(settings: &Logging) -> [String; 2] {
        let outputs: [Kept; 2] = Default::default();
        let [stdout, stderr] = outputs.clone();
        let log = subscriber(settings, move || stdout.clone(), move || stderr.clone());
        tracing::subscriber::with_default(log, || {
            tracing::info!("fine");
            tracing::warn!("odd");
            tracing::error!("bad");
        });
        outputs.map(|output| String::from_utf8(output.0.lock().unwrap().clone()).unwrap())
    }

    fn has(text: &str, messages: &[&str]) {
        for message in ["fine", "odd", "bad"] {
            let expected = messages.contains(&message);
            assert_eq!(text.contains(message), expected, "{message} in {text:?}");
        }
    }

    #[test]
    fn all_lines_go_to_stderr_unless_the_streams_are_split() {
        let mut settings = Logging::default();
        let [stdout, stderr] = written(&settings);
        has(&stdout, &[]);
        has(&stderr, &["fine", "odd", "bad"]);

        settings.options.text.split_stream = true;
        let [stdout, stderr] = written(&settings);
        has(&stdout, &["fine"]);
        has(&stderr, &["odd", "bad"]);

        // The option of the other format has no part in it.
        settings.format = "json".to_owned();
        has(&written(&settings)[0], &[]);
        settings.options.json.split_stream = true;
        let [stdout, stderr] = written(&settings);
        has(&stdout, &["fine", "odd"]);
        has(&stderr, &["bad"]);
    }
}
