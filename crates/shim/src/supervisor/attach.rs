//! Attaches descriptors of agents to containers.

use std::os::fd::OwnedFd;

use super::{attachments::Attachment, container_state::ContainerState, shim::Shim};
use crate::protocol::{CallFailure, Event, FailureKind, ShimReply, StreamFds};

impl Shim {
    /// Attaches descriptors to the outputs of a container.
    pub(super) fn attach(
        &mut self,
        id: &str,
        attach_id: &str,
        streams: StreamFds,
        fds: Vec<OwnedFd>,
    ) -> Result<ShimReply, CallFailure> {
        let slot = self.known(id)?;
        let invalid = |text: String| CallFailure::new(FailureKind::Invalid, text);
        if streams.stdin || fds.is_empty() || streams.count() != fds.len() {
            return Err(invalid(
                "an attachment needs one file descriptor for each output".to_owned(),
            ));
        }
        let container = &self.containers[&slot];
        let has_output = matches!(
            container.state,
            ContainerState::Created { .. } | ContainerState::Running { .. }
        );
        if !has_output || container.deletion.is_some() {
            return Err(container.wrong_state("attached to"));
        }
        // A stream that has already ended stays closed.
        let streams = [(0, streams.stdout), (1, streams.stderr)];
        let asked = streams.into_iter().filter(|(_, asked)| *asked);
        let open: Vec<_> = asked
            .zip(fds)
            .filter(|((stream, _), _)| container.output.is_open(*stream))
            .collect();
        for ((stream, _), target) in open {
            let attachment = Attachment::new((slot, id), stream, attach_id, target);
            let number = self.new_slot();
            if let Err(error) = self.attachments.add(number, attachment, &self.watch) {
                self.attachments.remove(attach_id, &self.watch);
                return Err(invalid(format!(
                    "an attachment needs pipes or sockets: {error}"
                )));
            }
        }
        Ok(ShimReply::Done)
    }

    /// Reports the attachments that were closed because they were read too slowly.
    pub(super) fn report_overruns(&mut self) {
        for (container, attach_id) in self.attachments.take_overrun() {
            self.report(Event::AttachmentOverrun {
                container,
                attach_id,
            });
        }
    }
}
